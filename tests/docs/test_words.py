"""What the documentation quotes is what the programs say and take."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from firmware_bridge.cli import COMMANDS, _parser

ROOT = Path(__file__).parents[2]
PAGES = [*(ROOT / "docs").glob("*.md"), *(ROOT / "hardware").glob("*/README.md"), ROOT / "README.md"]
TROUBLESHOOTING = ROOT / "docs" / "troubleshooting.md"
BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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


def commands() -> list[tuple[str, str]]:
    """Return each `duck` command in a block of the pages, with its page."""
    found = []
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            lines = [line.removeprefix("$ ") for line in block.splitlines()]
            found += [(page.name, line) for line in lines if line.startswith("duck ") and "..." not in line]
    return found


@pytest.mark.parametrize(("page", "line"), commands())
def test_every_duck_command_of_the_pages_is_valid(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    assert words[0] in COMMANDS
    try:
        _, unknown = _parser(words).parse_known_args(words)
    except (argparse.ArgumentError, SystemExit):
        pytest.fail(f"{page}: {line}")
    assert unknown == []
