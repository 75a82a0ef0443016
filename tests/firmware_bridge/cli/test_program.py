"""The `duck` program as a whole: what it loads, and what it does when its surroundings are broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from firmware_bridge.cli import COMMANDS, main
from firmware_bridge.cli.exits import EXIT_CODES
from firmware_bridge.cli.failures import shorten_tracebacks

HANG_S = 60
"""Time after which a process that should have ended is given up [s]."""
DUCK = f"{sys.executable} -m firmware_bridge.cli"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=HANG_S)


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)


@pytest.mark.parametrize("words", ["['--help']", "['run', '--help']"])
def test_help_loads_nothing_heavy(words: str) -> None:
    done = python(
        f"import sys\nfrom firmware_bridge.cli import main\ntry:\n    main({words})\n"
        "except SystemExit as end:\n"
        "    print('loaded', {'numpy', 'onnxruntime', 'serial', 'asyncio'} & set(sys.modules), end)"
    )
    assert done.stdout.endswith("loaded set() 0\n"), done.stderr


def test_only_the_module_of_the_command_that_is_named_is_loaded() -> None:
    done = python(
        "import sys\nfrom firmware_bridge import cli\ntry:\n    cli.main(['skills', '--help'])\n"
        "except SystemExit:\n"
        "    print({f'firmware_bridge.cli.{name}' for name in cli.COMMANDS} & set(sys.modules))"
    )
    assert done.stdout.endswith("{'firmware_bridge.cli.skills'}\n"), done.stderr


def test_the_help_lists_every_command_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    told = {line[0]: line[1] for line in lines if len(line) == 2}
    assert all(len(told[name]) > 10 for name in COMMANDS)


@pytest.mark.parametrize("words", [[], ["fly"], ["--port", "run"], ["run", "--fast"], ["run", "--sec", "1"]])
def test_words_that_are_no_command_exit_with_2_and_the_valid_ones(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert "usage: duck" in capsys.readouterr().err


def test_the_command_also_runs_as_a_module() -> None:
    done = shell(DUCK)
    assert done.returncode == 2 and "usage: duck" in done.stderr


def test_a_reader_that_has_seen_enough_ends_the_program_without_a_word() -> None:
    done = shell(f"({DUCK} config show; echo code $? >&2) | true")
    assert done.stderr in ("code 141\n", "code 0\n")  # 0 when it was quicker than its reader


def test_output_that_cannot_be_written_is_named() -> None:
    done = shell(f"{DUCK} config show > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "duck: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_were_closed_before_the_start_stay_out_of_the_way(tmp_path: Path, closed: str) -> None:
    opened = tmp_path / "first file that is opened"
    script = (
        "import os, sys; from firmware_bridge.cli import main; main(['config', 'show']); "
        f"print('told', file=sys.stderr); sys.exit(os.open({str(opened)!r}, os.O_CREAT) <= 2)"
    )
    done = shell(f'{sys.executable} -c "{script}" {closed}')
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_file_name_that_is_no_text_can_be_printed(tmp_path: Path) -> None:
    done = shell(f"LC_ALL=C.UTF-8 {DUCK} config init {tmp_path}/$(printf 'a\\377')")
    assert done.returncode == 0 and "\\udcff" in done.stdout


def test_an_interrupt_ends_a_command_without_a_traceback() -> None:
    patch = (
        "import sys, firmware_bridge.cli as cli, firmware_bridge.cli.skills as skills\n"
        "def interrupt(options): raise KeyboardInterrupt\n"
        "skills.skills_command = interrupt\nsys.exit(cli.main())"
    )
    done = python(patch, "skills")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


BROKEN = """
import sys, threading
import firmware_bridge.cli as cli, firmware_bridge.cli.skills as skills
def fail(options):
    thread = threading.Thread(target=lambda: {}["key"])
    thread.start()
    thread.join()
    raise TypeError("nobody expected this")
skills.skills_command = fail
sys.exit(cli.main())
"""


def test_an_error_that_nobody_expected_is_one_line_unless_debug_asks_for_more() -> None:
    done = python(BROKEN, "skills")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "duck: internal error: KeyError: 'key'; --debug shows where it came from",
        "duck: internal error: TypeError: nobody expected this; --debug shows where it came from",
    ]
    shown = python(BROKEN, "skills", "--debug")
    assert shown.returncode == 1 and shown.stderr.count("Traceback") == 2


def test_shortening_tracebacks_does_not_hide_an_error_without_a_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr("threading.excepthook", None)
    shorten_tracebacks()
    sys.excepthook(AssertionError, AssertionError(), None)
    assert "internal error: AssertionError; " in capsys.readouterr().err


def test_the_docs_tell_the_exit_codes_of_the_help() -> None:
    root = Path(__file__).parents[3]
    assert f"```\n{EXIT_CODES}```" in (root / "docs" / "run.md").read_text(encoding="utf-8")
