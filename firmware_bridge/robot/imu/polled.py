"""A sensor with a link of its own, read on a thread of its own, so that the loop never waits for it.

The thread keeps the newest reading and the time at which it was begun. The loop takes that, however often it
asks, until it is too old.
"""

from __future__ import annotations

import threading
from math import inf
from time import monotonic, sleep
from typing import NamedTuple

import numpy as np

from firmware_bridge.robot.imu.chip import Chip
from firmware_bridge.robot.imu.sample import ImuSample, ImuStaleError, Mounting, Reading, in_own_axes
from firmware_bridge.robot.imu.watch import OrientationWatch, RepeatWatch
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import BusError

READ_PERIOD_S = 0.01
"""Time between two readings [s]: the rate at which a BNO055 makes orientations."""
MAX_AGE_S = 2.5 * CONTROL_PERIOD_S
"""Oldest reading that is acted on [s], 50 ms. A healthy one is as old as the next is away, 10 ms, and what it
takes to come over, below 5 ms. A try that is lost costs 20 ms more, and a thread that wakes up a whole period
late 10: with both, a reading still passes. The loop's own patience with missing samples comes on top."""
LIVE_READINGS = 25
"""Good readings in a row to see before the sensor counts as alive, a quarter second."""
START_TIMEOUT_S = 3.0
"""Longest wait for them [s]."""


class _Stamped(NamedTuple):
    """A reading, and when it was begun [s]."""

    time_s: float
    reading: Reading


class PolledImu:
    """An `Imu` behind a link of its own.

    Args:
        chip: the sensor.
        mounting: how it sits in the trunk.
        threaded: read it on a thread of its own from the end of `check` on; else whoever owns the time calls
            `step` every `READ_PERIOD_S`.
    """

    def __init__(self, chip: Chip, mounting: Mounting, threaded: bool = True) -> None:
        self._chip, self._mounting = chip, mounting
        self._repeats: list[RepeatWatch] = []
        self._orientation = OrientationWatch(READ_PERIOD_S)
        self._newest = _Stamped(-inf, Reading((), ()))
        self._error: BusError | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="imu", daemon=True) if threaded else None
        self._started = False

    def check(self) -> None:
        """Prove that the right chip is there, set it up, and wait until it gives live readings.

        Raises:
            DeviceError: another chip answers, or a defective one.
            PortError: its port does not work.
            ImuError: it does not answer, or gives no live readings within 3 s.
        """
        self._chip.start()
        give_up = monotonic() + START_TIMEOUT_S
        live = 0
        while live < LIVE_READINGS:
            self.step()
            if self._error is not None and monotonic() >= give_up:
                raise self._error
            live = live + 1 if self._error is None else 0
            sleep(READ_PERIOD_S)
        if self._thread is not None:
            self._thread.start()
        self._started = True

    def read(self, deadline: float) -> ImuSample:
        """Return the newest sample at once, whatever the deadline.

        Raises:
            ImuStaleError: it is more than 50 ms old, and nobody knows why; or nobody reads any more.
            BusError: it is that old, and this is why: an `ImuError`, or a `PortError` if the port is gone.
        """
        return self._mounting.sample(self._fresh())

    def raw(self) -> tuple[np.ndarray, np.ndarray]:
        """See `Imu.raw`; the newest reading, at once."""
        return in_own_axes(self._fresh())

    def advice(self) -> str | None:
        """Return what would make the sensor measure better, None when there is nothing."""
        return self._chip.advice()

    def close(self) -> None:
        """End the thread, which may have to finish a reading, and let go of the link."""
        self._ending.set()
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join()
        self._chip.close()

    def step(self) -> None:
        """Take one reading, and keep it, or else why there is none."""
        now = monotonic()
        try:
            reading = self._chip.read()
            self._judge(reading)
        except BusError as error:
            self._error = error
        else:
            self._newest, self._error = _Stamped(now, reading), None

    def _judge(self, reading: Reading) -> None:
        if not self._repeats:
            self._repeats = [RepeatWatch() for _ in reading.inertial]
        for watch, data in zip(self._repeats, reading.inertial, strict=True):
            watch.watch(data)
        self._orientation.watch(reading.orientation, reading.rate)

    def _fresh(self) -> Reading:
        newest, error = self._newest, self._error
        age_s = monotonic() - newest.time_s
        if age_s <= MAX_AGE_S:
            return newest.reading
        if not self._started:
            raise ImuStaleError("the IMU is not read yet; check it first")
        if self._thread is not None and not self._thread.is_alive():
            raise ImuStaleError("the thread that reads the IMU has ended; end the drive and begin it again")
        if error is not None:
            raise error.with_traceback(None)  # or it would grow at every tick
        raise ImuStaleError(
            f"the IMU's newest sample is {age_s * 1e3:.0f} ms old, and {MAX_AGE_S * 1e3:g} ms is the most; "
            "its link hangs, or this machine is too busy"
        )

    def _run(self) -> None:
        next_s = monotonic()
        while not self._ending.wait(next_s - monotonic()):
            self.step()
            next_s = max(next_s + READ_PERIOD_S, monotonic())
