"""What the documentation quotes is what the programs say and take."""

from __future__ import annotations

import argparse
import ast
import io
import re
import shlex
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache, wraps
from inspect import isfunction
from pathlib import Path

import pytest

from firmware_bridge.cli import COMMANDS, _parser

ROOT = Path(__file__).parents[2]
PAGES = [*(ROOT / "docs").glob("*.md"), *(ROOT / "hardware").glob("*/README.md"), ROOT / "README.md"]
TROUBLESHOOTING = ROOT / "docs" / "troubleshooting.md"
BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
OPEN = "…"
"""Stands for what differs from one message to the next, in quotations and in the templates of messages."""
LEAST_QUOTED = 40
"""Quotations that the page has at least, so that a change of its form does not go unnoticed."""


@cache
def templates() -> str:
    """Every text of the runtime's sources, a line each, with `OPEN` for what is put in."""
    paths = [*(ROOT / "firmware_bridge").rglob("*.py"), *(ROOT / "hardware").glob("*.py")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    return "\n".join(text_of(node) for tree in trees for node in ast.walk(tree))


def text_of(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values).replace("\n", " ")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.replace("\n", " ").replace("%s", OPEN).replace("%d", OPEN)
    return OPEN if isinstance(node, ast.FormattedValue) else ""


def quotations() -> list[str]:
    """Return the messages in the first column of the page's tables."""
    rows = re.findall(r"^\| (.+?) \|", TROUBLESHOOTING.read_text(encoding="utf-8"), re.MULTILINE)
    messages = [row for row in rows if row.startswith("`") and row.endswith("`") and row.count("`") == 2]
    return [message.strip("`") for message in messages]


def is_said(message: str, said: str) -> bool:
    """Return whether a program can say a message: its parts come in order in one of the texts."""
    parts = [part for part in message.split(OPEN) if part.strip()]
    pattern = ".*".join(map(re.escape, parts))
    return re.search(pattern, said) is not None


@pytest.mark.parametrize("message", quotations())
def test_troubleshooting_quotes_what_the_programs_say(message: str) -> None:
    assert is_said(message, templates())


def test_troubleshooting_quotes_many_messages() -> None:
    assert len(quotations()) >= LEAST_QUOTED


def test_a_message_nobody_says_is_found() -> None:
    said = f"no device on {OPEN} answers; wait\nanother text"
    assert is_said(f"no device on {OPEN} answers", said)
    assert not is_said(f"no device on {OPEN} replies", said)
    assert not is_said(f"no device on {OPEN} text", said)


def commands(program: str) -> list[tuple[str, str]]:
    """Return each command of a program in a block of the pages, with its page."""
    found = []
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            lines = [line.removeprefix("$ ") for line in block.replace("\\\n", " ").splitlines()]
            lines = [line for line in lines if line.startswith(f"{program} ") and "..." not in line]
            found += [(page.name, line) for line in lines]
    return found


@pytest.mark.parametrize(("page", "line"), commands("duck"))
def test_every_duck_command_of_the_pages_is_valid(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    assert words[0] in COMMANDS
    try:
        _, unknown = _parser(words).parse_known_args(words)
    except (argparse.ArgumentError, SystemExit):
        pytest.fail(f"{page}: {line}")
    assert unknown == []


@pytest.fixture
def microduck(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], int]:
    """The `microduck` command, which reads its command line and does nothing."""
    from export.cli import app

    def idle(command: Callable[..., None]) -> Callable[..., None]:
        return wraps(command)(lambda *_, **__: None)

    for name, command in vars(app).copy().items():
        if isfunction(command) and name not in ("run", "run_safely"):
            monkeypatch.setattr(app, name, idle(command))
    return app.run


@pytest.mark.parametrize(("page", "line"), commands("microduck"))
def test_every_microduck_command_of_the_pages_is_valid(
    microduck: Callable[[list[str]], int], page: str, line: str
) -> None:
    try:
        assert microduck(shlex.split(line, comments=True)[1:]) == 0
    except SystemExit:
        pytest.fail(f"{page}: {line}")


@pytest.mark.parametrize(
    "line", ["train runs/x --minute 3", "train", "fly", "play runs/x walk.mp4 --command 0"]
)
def test_a_microduck_command_that_is_not_valid_is_found(
    microduck: Callable[[list[str]], int], line: str
) -> None:
    with pytest.raises(SystemExit):
        microduck(line.split())


def mentions() -> list[tuple[str, str]]:
    """Return each command that a sentence or a table of the pages names, with its page."""
    found = set()
    for page in PAGES:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        found |= {(page.name, line) for line in re.findall(r"`((?:duck|microduck) [a-z][^`]*)`", text)}
    return sorted(found)


@cache
def help_of(program: str, command: str) -> str:
    """Return what a command says of its options."""
    from export.cli import app

    said = io.StringIO()
    with redirect_stdout(said), pytest.raises(SystemExit) as ended:
        if program == "duck":
            _parser([command]).parse_args([command, "--help"])
        else:
            app.run([command, "--help"])
    assert ended.value.code == 0
    return said.getvalue()


@pytest.mark.parametrize(("page", "line"), mentions())
def test_every_command_that_the_pages_mention_has_these_options(page: str, line: str) -> None:
    program, command, *words = line.split()
    said = help_of(program, command)
    options = [word for word in words if word.startswith("--")]
    assert [word for word in options if re.search(rf"{word}(?![\w-])", said) is None] == [], page


def test_an_option_that_a_command_lacks_is_found() -> None:
    with pytest.raises(AssertionError):
        test_every_command_that_the_pages_mention_has_these_options("page.md", "duck run --comman")
    assert len(mentions()) >= LEAST_QUOTED
