"""Writing a recording beside the loop: a bounded queue, a thread, a growing file, at last a `.tdz`."""

from __future__ import annotations

import errno
import json
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np

from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.summary import Tick
from firmware_bridge.recording import finished, part
from firmware_bridge.recording.description import MAX_EVENTS
from firmware_bridge.recording.rows import Rows
from firmware_bridge.recording.space import MEGABYTE, Space
from hardware import contract
from hardware.errors import ArchiveError, ConfigError

SAVE_S = 0.5
"""Longest time from a tick until it is on the disk [s], while the disk keeps up."""
MOST_WAITING = 500
"""Ticks that wait for a slow disk, ten seconds of them; they take about 3 MB of memory."""
CLOSE_S = 20.0
"""Longest to wait at the end for a disk that takes nothing [s]."""
MAX_REASON = 500
"""Longest reason of a mode that is kept, in characters."""


def create(path: Path) -> BinaryIO:
    """Make a file that does not exist yet; what is written to it is not held back in this program."""
    return path.open("xb", buffering=0)


class Dealings(NamedTuple):
    """How a recorder deals with whoever runs it.

    Attributes:
        tell: takes a line of news; any thread calls it.
        give_up: whether to leave the append-only file as it is, asked while the target is made of it.
        create: opens a new file.
    """

    tell: Callable[[str], None] = lambda text: None
    give_up: Callable[[], bool] = lambda: False
    create: Callable[[Path], BinaryIO] = create


class Recorder:
    """Context that records the ticks it is given; nothing that goes wrong with it reaches the loop.

    While it is open, the ticks are in an append-only file beside the target, `NAME.tdz.part`; at the end that
    becomes the target. Whatever ends the program, what was written until then can be read.

    Args:
        path: the target, `.tdz`; neither it nor the file beside it may exist.
        meta: the description, as of `description.describe`.
        space: how much room it may take.
        dealings: with whoever runs it.

    Attributes:
        dropped: ticks that were left out because the disk was too slow.
    """

    def __init__(
        self,
        path: Path,
        meta: Mapping[str, Any],
        space: Space | None = None,
        dealings: Dealings | None = None,
    ) -> None:
        self._path, self._part, self._meta = path, part.path_beside(path), meta
        self._space, self._dealings = space or Space(), dealings or Dealings()
        self._width = contract.width(meta["layout"])
        self._rows = Rows(meta["skills"], self._width, round(SAVE_S / contract.CONTROL_PERIOD_S))
        self._queue: queue.SimpleQueue[tuple[int, Tick] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._file: BinaryIO | None = None
        self._ended: str | None = None
        self._events: list[bytes] = []
        self._reason: tuple[Mode, str] | None = None
        self._seen = self._size = self._told = self._readable = 0
        self.dropped = 0

    def __enter__(self) -> Self:
        """Make the file.

        Raises:
            ConfigError: it exists, or cannot be made there; a full disk is only told of.
        """
        for path in (self._path, self._part):
            if os.path.lexists(path):  # also a link to nothing
                raise ConfigError(f"{path} exists already; name another file to record to, or move that one")
        try:
            self._file = self._dealings.create(self._part)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise ConfigError(
                    f"cannot record to {self._path}: {error.strerror}; choose another"
                ) from error
            self._end(str(error.strerror))
        self._thread.start()
        return self

    def add(self, tick: Tick) -> None:
        """Record a tick; this neither waits nor raises."""
        self._seen += 1
        if self._ended is not None:
            return
        if self._queue.qsize() < MOST_WAITING:
            self._queue.put((self._seen, tick))
            return
        if not self.dropped:
            self._dealings.tell("the disk is too slow for the recording, which leaves ticks out")
        self.dropped += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.put(None)
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            self._keep("the disk takes nothing more")
        elif self._file is not None:
            self._file.close()
            self._finish()

    def _work(self) -> None:
        self._append(part.beginning(self._meta, self._width))
        due = monotonic() + SAVE_S
        while True:
            try:
                item = self._queue.get(timeout=max(0.0, due - monotonic()))
            except queue.Empty:
                pass
            else:
                if item is None:
                    break
                self._take(*item)
            if self._rows.full or monotonic() >= due:
                self._save()
                due = monotonic() + SAVE_S
        self._save()

    def _take(self, index: int, tick: Tick) -> None:
        self._rows.add(index, tick)
        if (tick.mode, tick.reason) == self._reason or self._told == MAX_EVENTS:
            return
        self._reason, self._told = (tick.mode, tick.reason), self._told + 1
        event = {"time": tick.time_s, "mode": tick.mode.value, "reason": tick.reason[:MAX_REASON]}
        self._events.append(part.frame(part.EVENT, json.dumps(event).encode()))

    def _save(self) -> None:
        ticks = self._rows.count
        if ticks:
            self._append(part.frame(part.TICKS, self._rows.take()) + b"".join(self._events))
            self._events.clear()
            self._readable += ticks if self._ended is None else 0

    def _append(self, data: bytes) -> None:
        """Put bytes on the disk; where that fails, the recording is over."""
        if self._file is None or self._ended is not None:
            return
        try:
            refusal = self._space.refusal(self._part.parent, self._size, len(data))
            if refusal is None:
                left = memoryview(data)
                while left:  # a disk takes what it has room for, and says why not the rest when asked again
                    left = left[self._file.write(left) :]
                os.fdatasync(self._file.fileno())
                self._size += len(data)
        except OSError as error:
            refusal = error.strerror
        if refusal is not None:
            self._end(refusal)

    def _end(self, reason: str) -> None:
        self._ended = reason
        self._dealings.tell(f"the recording ends here, the drive goes on: {reason}")

    def _finish(self) -> None:
        """Make the target of the append-only file, which stays where that fails."""
        try:
            ticks = self._make_target() if self._size else 0
        except InterruptedError:
            self._keep("interrupted")
        except FileExistsError:
            self._keep("a file of that name has come there meanwhile")
        except OSError as error:
            self._keep(str(error.strerror))
        except ValueError as error:  # it was spoiled, or emptied
            self._keep(str(error))
        else:
            if ticks:
                lost = f", without {self.dropped} for which the disk was too slow" if self.dropped else ""
                size = self._size / MEGABYTE
                self._dealings.tell(f"recorded {ticks} ticks{lost}, {size:.1f} MB: {self._path}")
            self._remove_part()

    def _remove_part(self) -> None:
        try:
            self._part.unlink(missing_ok=True)
        except OSError as error:
            self._dealings.tell(f"{self._part} is no longer needed, but cannot be removed ({error.strerror})")

    def _make_target(self) -> int:
        """Return the number of ticks in it; of none it is not made.

        Raises:
            ArchiveError: not all that was written is there.
        """
        # Behind what was written in full there may be a piece for which the disk had no room.
        self._readable = 0
        whole = part.Part(np.memmap(self._part, np.uint8, "r")[: self._size].data)
        self._readable = whole.ticks
        if whole.problems:
            raise ArchiveError("; ".join(whole.problems))
        meta = {**whole.meta, "dropped": self.dropped, "ended": self._ended}
        if whole.ticks:
            finished.write(self._path, whole.ticks, whole.row, self._patient(whole.column), meta)
        return whole.ticks

    def _patient(self, columns: finished.Columns) -> finished.Columns:
        """Return the same columns, which raise InterruptedError when the user gives up."""

        def column(name: str) -> Iterator[np.ndarray]:
            for piece in columns(name):
                if self._dealings.give_up():
                    raise InterruptedError
                yield piece

        return column

    def _keep(self, reason: str) -> None:
        if self._readable:
            way = f"{self._part} has {self._readable} of its ticks; `duck convert` makes a .tdz of it"
        else:
            way = f"its ticks are lost, none can be read in {self._part}"
        self._dealings.tell(f"{self._path} was not made ({reason}); {way}")
