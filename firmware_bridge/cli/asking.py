"""Questions to the person at the terminal, on standard error, so that output stays clean."""

from __future__ import annotations

import sys


def ask(question: str) -> str:
    """Show a question and return the answer, lower case and without blanks; `q` when nobody can answer."""
    print(question, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        print(file=sys.stderr)
        return "q"
    return line.strip().lower()


def agreed(question: str, yes: bool) -> bool:
    """Return whether the person agrees; only `y` or `yes` does.

    Args:
        question: what is about to happen.
        yes: whether the command line agreed already.
    """
    return yes or ask(f"{question} [y/N] ") in ("y", "yes")
