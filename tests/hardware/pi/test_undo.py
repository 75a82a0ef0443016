"""Whatever others do to the files of install.sh: it runs again, and gives back what was there."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PI = Path(__file__).parents[3] / "hardware" / "pi"


@pytest.mark.parametrize("end", ["", "\n"])
def test_uninstall_leaves_every_file_as_it_was(board: Any, end: str) -> None:
    board.write("boot/firmware/cmdline.txt", board.cmdline.rstrip("\n") + end)
    board.write("boot/firmware/config.txt", board.config.rstrip("\n") + end)
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


def test_what_others_changed_since_outlives_a_second_run_and_the_uninstall(board: Any) -> None:
    board.succeed()
    path, words = "boot/firmware/config.txt", "boot/firmware/cmdline.txt"
    board.write(path, board.text(path).replace("dtparam=audio=on", "dtparam=audio=off"))
    board.write(words, board.text(words).replace("rootwait", "rootwait quiet"))
    board.succeed("--i2c")
    assert "dtparam=i2c_arm=on" in board.text(path)
    board.succeed("--uninstall")
    assert board.text(path) == board.config.replace("audio=on", "audio=off")
    assert board.text(words) == board.cmdline.replace("rootwait", "rootwait quiet")


@pytest.mark.parametrize("appended", ["dtoverlay=dwc2\n", "\r\n[pi4]\r\narm_boost=1", "\n\n# end\n\n"])
def test_lines_after_ours_outlive_a_second_run_and_the_uninstall_byte_for_byte(
    board: Any, appended: str
) -> None:
    board.succeed()
    path = board.top / "boot/firmware/config.txt"
    ours = path.read_bytes().removeprefix(board.config.encode())
    path.write_bytes(path.read_bytes() + appended.encode())
    board.succeed()
    assert path.read_bytes().count(ours) == 1
    said = board.succeed()
    assert "Everything was as it should be." in said
    board.succeed("--uninstall")
    assert path.read_bytes().removesuffix(b"\n") == (board.config + appended).encode().removesuffix(b"\n")


def test_words_beside_the_one_that_was_taken_outlive_the_uninstall(board: Any) -> None:
    board.succeed()
    path = "boot/firmware/cmdline.txt"
    board.write(path, "quiet " + board.text(path).replace("console=tty1", "splash console=tty1 nosplash"))
    board.succeed()
    board.succeed("--uninstall")
    assert board.text(path) == "quiet splash " + board.cmdline.replace(
        "console=tty1", "console=tty1 nosplash"
    )


def test_lines_of_ours_in_a_file_with_the_ends_of_another_system_are_found(board: Any) -> None:
    board.succeed()
    path = board.top / "boot/firmware/config.txt"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    board.succeed("--uninstall")
    assert path.read_bytes() == board.config.replace("\n", "\r\n").encode()


def test_an_edit_inside_our_lines_is_kept_beside(board: Any) -> None:
    board.succeed()
    path = "boot/firmware/config.txt"
    board.write(path, board.text(path).replace("enable_uart=1", "enable_uart=0"))
    edited = board.text(path)
    said = board.succeed("--uninstall")
    assert "the edited one is kept as /boot/firmware/config.txt.kept-1" in said
    assert board.text(f"{path}.kept-1") == edited
    assert board.text(path) == board.config


def test_our_lines_may_be_deleted_by_hand(board: Any) -> None:
    before = board.snapshot()
    board.succeed()
    board.write("boot/firmware/config.txt", board.config)
    board.succeed("--uninstall")
    assert board.snapshot() == before


def test_an_edited_file_of_ours_is_kept_beside_under_a_name_that_is_free(board: Any) -> None:
    path = "etc/systemd/system/microduck@.service"
    others = {f"{path}{end}": f"the user's {end}\n" for end in (".kept", ".new", ".kept-1")}
    for name, text in others.items():
        board.write(name, text)
    before = board.snapshot()
    board.succeed()
    for number, text in ((2, "# mine\n"), (3, "# mine again\n")):
        board.write(path, text)
        board.succeed()
        assert board.text(path) == (PI / "microduck@.service").read_text()
        assert board.text(f"{path}.kept-{number}") == text
    assert {name: board.text(name) for name in others} == others
    board.succeed("--uninstall")
    assert {name for name in board.snapshot() if name not in before} == {f"{path}.kept-2", f"{path}.kept-3"}


def test_a_file_of_the_user_comes_back_though_ours_in_its_place_was_edited(board: Any) -> None:
    path = "etc/udev/rules.d/99-microduck.rules"
    board.write(path, "# a rule of the user's own\n")
    board.succeed()
    board.write(path, "# ours, edited\n")
    board.succeed("--uninstall")
    assert board.text(path) == "# a rule of the user's own\n"
    assert board.text(f"{path}.kept-1") == "# ours, edited\n"


def half_a_block(board: Any) -> None:
    path = "boot/firmware/config.txt"
    board.write(path, board.text(path).replace("# <<< microduck\n", ""))


def a_link(board: Any) -> None:
    path = board.top / "etc/systemd/system/microduck@.service"
    path.unlink()
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("option", ["--i2c", "--uninstall"])
@pytest.mark.parametrize(
    ("spoil", "message"), [(half_a_block, "once each, in this order, or neither"), (a_link, "is a link")]
)
def test_nothing_changes_where_one_file_must_be_refused(
    board: Any, spoil: Callable[[Any], None], message: str, option: str
) -> None:
    board.succeed()
    spoil(board)
    before, calls = board.snapshot(), len(board.commands())
    done = board.install(option)
    assert done.returncode == 1
    assert message in done.stderr
    assert board.snapshot() == before
    assert {line.split()[0] for line in board.commands()[calls:]} <= {"dpkg", "python3"}


def test_a_command_named_duck_of_somebody_else_is_found_before_anything_changes(board: Any) -> None:
    board.write("usr/local/bin/duck", "quack\n")
    before = board.snapshot()
    done = board.install()
    assert done.returncode == 1
    assert "usr/local/bin/duck is there and is not ours" in done.stderr
    assert board.snapshot() == before


KILLER = """#!/bin/bash
echo >>"$COUNT"
if (( $(wc -l <"$COUNT") == KILL_AT )); then kill -9 $PPID; exit; fi
exec "{program}" "$@"
"""
"""Stands before a program and kills the script where it calls that for the KILL_AT-th time."""


@pytest.fixture
def killed(board: Any, tmp_path: Path) -> Callable[..., None]:
    """Runs the script until it moves a file for the n-th time, or removes one, and kills it there."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("mv", "rm"):
        (tools / name).write_text(KILLER.format(program=shutil.which(name)))
        (tools / name).chmod(0o755)

    def run(number: int, *options: str) -> None:
        count = tmp_path / "count"
        count.unlink(missing_ok=True)
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        done = board.install(*options, PATH=path, COUNT=str(count), KILL_AT=str(number), TMPDIR=str(tmp_path))
        assert done.returncode != 0, "it never got that far"

    return run


@pytest.mark.parametrize("number", [1, 3, 4, 6, 8])
def test_after_a_kill_anywhere_a_new_run_finds_its_way(
    board: Any, killed: Callable[..., None], number: int
) -> None:
    board.write("etc/udev/rules.d/99-microduck.rules", "# a rule of the user's own\n")
    before = board.snapshot()
    killed(number)
    board.succeed()
    config = board.text("boot/firmware/config.txt")
    assert config.startswith(board.config) and config.count("enable_uart=1") == 1
    killed(number, "--uninstall")
    board.succeed("--uninstall")
    left = {name: data for name, data in board.snapshot().items() if not is_half_written(name)}
    assert left == before


def is_half_written(name: str) -> bool:
    """Whether a file is what a kill left of the next one, under a name that no program reads."""
    return re.search(r"\.(txt|rules|conf|service)\.\w{6}$", name) is not None


def test_what_somebody_else_took_back_already_does_not_stop_the_uninstall(board: Any) -> None:
    before = board.snapshot()
    board.succeed()
    board.write("etc/group", board.group)
    board.write("usr/bin/gpasswd", "#!/bin/sh\nexit 3\n")
    board.write("usr/bin/systemctl", '#!/bin/sh\n[ "$1" != disable ]\n')
    for program in ("gpasswd", "systemctl"):
        before.pop(f"usr/bin/{program}")
    board.succeed("--uninstall")
    after = board.snapshot()
    assert {name: data for name, data in after.items() if name in before} == before
    assert set(after) - set(before) == {"usr/bin/gpasswd", "usr/bin/systemctl"}


def test_a_signal_in_the_middle_leaves_nothing_behind_and_names_the_way_on(
    board: Any, tmp_path: Path
) -> None:
    board.write("usr/bin/python3", '#!/bin/sh\n[ "$1" != -m ] || kill -TERM $PPID\n')
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = board.install(TMPDIR=str(scratch))
    assert done.returncode == 143
    assert "stopped in step 6" in done.stderr
    assert list(scratch.iterdir()) == []


def test_a_step_that_fails_is_named_with_the_way_on(board: Any) -> None:
    board.write("usr/bin/python3", '#!/bin/sh\n[ "$1" != -m ] || { echo "no room" >&2; exit 1; }\n')
    done = board.install()
    assert done.returncode == 1
    assert "no room" in done.stderr
    assert "stopped in step 6" in done.stderr and "run this again" in done.stderr


def test_blanks_in_names_of_folders_change_nothing(make_board: Callable[..., Any], tmp_path: Path) -> None:
    checkout = tmp_path / "a checkout"
    shutil.copytree(PI, checkout / "hardware" / "pi")
    for name in ("firmware_bridge", "microduck", "export"):
        (checkout / name).mkdir()
    for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        (checkout / name).touch()
    board = make_board(tmp_path / "a board" / "with blanks")
    board = board._replace(script=checkout / "hardware/pi/install.sh")
    before = board.snapshot()
    board.succeed()
    board.succeed("--uninstall")
    assert board.snapshot() == before
