"""Numbers to TensorBoard: `tensorboard --logdir RUN` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from microduck.learning.faults import writing


class TensorBoard:
    """Writes event files.

    Args:
        folder: where they go.
        since: points past this many transitions, which an earlier attempt left, are taken back.
    """

    def __init__(self, folder: Path, since: int = 0) -> None:
        self._folder = folder
        with writing(folder):
            self._writer = SummaryWriter(str(folder), purge_step=since + 1)

    def write(self, values: Mapping[str, float], transitions: int) -> None:
        """Write numbers by name through to the file."""
        with writing(self._folder):
            for name, value in values.items():
                self._writer.add_scalar(name, value, transitions)
            self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        with writing(self._folder):
            self._writer.close()
