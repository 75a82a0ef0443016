"""A sensor chip behind a link of its own, as the thread that reads it sees it; and the link's registers."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import Protocol

from firmware_bridge.robot.imu.sample import Reading

POLL_S = 0.01
"""Time between two looks at whether a chip is ready [s]."""


class Link(Protocol):
    """Access to the registers of one chip.

    Attributes:
        name: what messages call the place of the chip.
    """

    name: str

    def read(self, address: int, length: int) -> bytes:
        """Return registers from an address on.

        Raises:
            BusError: the chip does not answer, answers nonsense, or its port does not work.
        """
        ...

    def write(self, address: int, value: int) -> None:
        """Write one register; raises what `read` does."""
        ...

    def close(self) -> None:
        """Let go of the port."""
        ...


class Chip(Protocol):
    """A sensor that is read a hundred times a second."""

    def start(self) -> None:
        """Prove that it is the right chip, set it up and wait until it measures.

        Raises:
            DeviceError: it is another chip, or a defective one.
            BusError: it does not answer, or does not start.
        """
        ...

    def read(self) -> Reading:
        """Measure.

        Raises:
            BusError: it does not answer, or gives no orientation.
        """
        ...

    def advice(self) -> str | None:
        """Return what would make it measure better, None when there is nothing."""
        ...

    def close(self) -> None:
        """Let go of the link."""
        ...


def wait_until(ready: Callable[[], bool], timeout_s: float) -> bool:
    """Look again and again whether a chip is ready; return whether it was in time [s]."""
    give_up = monotonic() + timeout_s
    while not ready():
        if monotonic() >= give_up:
            return False
        sleep(POLL_S)
    return True
