"""Reading the body tick by tick, and for how long nothing was seen."""

from __future__ import annotations

from firmware_bridge.drive import safety
from firmware_bridge.drive.limits import Limits
from firmware_bridge.drive.summary import Tally
from firmware_bridge.robot.body import Body, BodySample
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import BusError


class Senses:
    """Reads a body and keeps the newest sample.

    Args:
        body: the body.
        limits: how long to do without a sample.
        tally: where errors and alerts are counted.

    Attributes:
        sample: the newest, None before the first.
        fresh: whether it is of this tick.
        gap: control periods between it and the one before.
        error: why the last failed read or write failed.
    """

    def __init__(self, body: Body, limits: Limits, tally: Tally) -> None:
        self._body, self._limits, self._tally = body, limits, tally
        self.sample: BodySample | None = None
        self.fresh = False
        self.gap = 0
        self.error = "nothing was read"
        self._blind = 0

    def read(self, periods: int, deadline: float) -> None:
        """Measure.

        Args:
            periods: control periods since the last call.
            deadline: monotonic time until which it may take [s].
        """
        self._blind += periods
        try:
            self.sample = self._body.read(deadline)
        except BusError as error:
            self.fresh = False
            self.note(error)
            return
        self.fresh, self.gap, self._blind = True, self._blind, 0
        self._tally.alerts.update(safety.alarming(self.sample.alerts, self.sample.health))

    def note(self, error: BusError) -> None:
        """Count a failed read or write and keep its text."""
        self._tally.bus_errors[type(error).__name__] += 1
        self.error = str(error)

    @property
    def holding(self) -> bool:
        """Whether the newest sample is too old for the policy."""
        return self.sample is None or self._blind > self._limits.coast_ticks

    @property
    def lost(self) -> str | None:
        """For how long nothing was seen and why, None while that is short."""
        blind_s = self._blind * CONTROL_PERIOD_S
        if blind_s < self._limits.lost_s - CONTROL_PERIOD_S / 2:
            return None
        return f"no sample for {blind_s:.2f} s, last because: {self.error}"
