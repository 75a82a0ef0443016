"""A copy of a Raspberry Pi's files, with stand-ins for its commands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

PI = Path(__file__).parents[3] / "hardware" / "pi"

CONFIG = "# For more options see the documentation\ndtparam=audio=on\n\n[cm4]\notg_mode=1\n\n[all]\n"
CMDLINE = (
    "console=serial0,115200 console=tty1 root=PARTUUID=5c5f-02 rootfstype=ext4 fsck.repair=yes rootwait\n"
)
PASSWD = "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000:,,,:/homes/ann:/bin/bash\n"
GROUP = "root:x:0:\ndialout:x:20:bob\ninput:x:996:\ni2c:x:994:\nann:x:1000:\n"
BOARDS = {
    "zero": "Raspberry Pi Zero 2 W Rev 1.0",
    "four": "Raspberry Pi 4 Model B Rev 1.5",
    "five": "Raspberry Pi 5 Model B Rev 1.0",
}
STAND_INS = {
    "dpkg": "echo ${ARCHITECTURE:-arm64}",
    "usermod": 'sed -i -E "s/^$2:.*:$/&$3/; t; s/^$2:.*/&,$3/" "$TOP/etc/group"',
    "gpasswd": 'sed -i -E "/^$3:/ { s/([:,])$2\\$/\\1/; s/,\\$// }" "$TOP/etc/group"',
    "systemctl": "",
    "udevadm": "",
    # Makes an environment whose own Python is a stand-in, too.
    "python3": """[ "$1" != -m ] || { mkdir -p "$3/bin"; cp "$TOP/usr/bin/udevadm" "$3/bin/python"; }""",
}

Snapshot = dict[str, bytes | str]


class Board(NamedTuple):
    """A copy of a board's files.

    Attributes:
        top: its folder.
        config, cmdline, group: what these files of it hold at first.
        script: the install.sh that is run on it.
    """

    top: Path
    config: str = CONFIG
    cmdline: str = CMDLINE
    group: str = GROUP
    script: Path = PI / "install.sh"

    def write(self, path: str, text: str) -> None:
        """Make a file of the board."""
        target = self.top / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def text(self, path: str) -> str:
        """Return what a file of the board holds."""
        return (self.top / path.lstrip("/")).read_text()

    def install(self, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the script on the board."""
        command = ["bash", str(self.script), "--root", str(self.top), "--user", "ann", *options]
        environment = {**os.environ, "TOP": str(self.top), **variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def succeed(self, *options: str) -> str:
        """Run the script and return what it says."""
        done = self.install(*options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def commands(self) -> list[str]:
        """Return what the stand-ins were called with."""
        log = self.top / "log"
        return log.read_text().splitlines() if log.exists() else []

    def snapshot(self) -> Snapshot:
        """Return every file, link and mode, and what was in it."""
        found: Snapshot = {}
        for path in sorted(self.top.rglob("*")):
            name = str(path.relative_to(self.top))
            if path.is_symlink():
                found[name] = f"-> {path.readlink()}"
            elif path.is_file() and name != "log":
                found[name] = f"{path.stat().st_mode:o} ".encode() + path.read_bytes()
        return found


def make_board(top: Path, model: str = "zero") -> Board:
    board = Board(top)
    board.write("proc/device-tree/model", f"{BOARDS[model]}\0")
    for path, text in {
        "boot/firmware/config.txt": CONFIG,
        "boot/firmware/cmdline.txt": CMDLINE,
        "etc/passwd": PASSWD,
        "etc/group": GROUP,
    }.items():
        board.write(path, text)
    for name, body in STAND_INS.items():
        board.write(f"usr/bin/{name}", f'#!/bin/sh\necho "{name} $*" >>"$TOP/log"\n{body}\n')
        (top / "usr/bin" / name).chmod(0o755)
    (top / "boot/firmware/config.txt").chmod(0o755)
    return board


@pytest.fixture(name="make_board")
def make_board_fixture() -> Callable[..., Board]:
    return make_board


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return make_board(tmp_path / "board")
