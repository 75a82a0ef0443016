"""Progress of long work: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from microduck.cli.console import console

LINE_EVERY_S = 15.0
"""Time between two lines where no bar can be drawn [s]."""


class Bar:
    """A progress bar with a text that changes; use as a context manager.

    Args:
        title: what is going on.
        total: size of the work, in any unit.
    """

    def __init__(self, title: str, total: float) -> None:
        columns = (TextColumn("[bold]{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f}%"))
        self._progress = Progress(
            *columns,
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[text]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(title, total=total, text="")
        self._title, self._total, self._line_at = title, total, time.monotonic() + LINE_EVERY_S

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, done: float, text: str = "") -> None:
        """Show how much is done and a text beside it."""
        self._progress.update(self._task, completed=done, text=text)
        if not console.is_terminal and time.monotonic() >= self._line_at:
            self._line_at = time.monotonic() + LINE_EVERY_S
            console.print(f"{self._title} {done / self._total:4.0%}  {text}")
