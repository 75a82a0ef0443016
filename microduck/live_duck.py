"""A virtual duck that lives by the clock, as finely as whoever is on its bus can tell."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Protocol

import numpy as np

from firmware_bridge.drive.clock import Ticker
from firmware_bridge.wire.protocol import Instruction, Packet
from microduck.virtual_body import STEP_S

LOOK_S = 0.001
"""Age up to which a measurement is told again [s]: a servo's own loop takes as long."""
MOST_CATCH_UP_S = 0.2
"""Time made up for after a pause of the machine [s]; time beyond is lost, not replayed as a burst."""
_LONGEST_S = 1.5 * STEP_S
"""Longest step [s]: half of one more than usual, so that the last before a read need not be a short one."""
_READS = (Instruction.READ, Instruction.SYNC_READ, Instruction.FAST_SYNC_READ)


class Stepped(Protocol):
    """What lives; see `microduck.virtual_duck.VirtualDuck`."""

    def step(self, lasts: float, goals: np.ndarray) -> None:
        """Let a time [s] pass in which the goals were (14,) [rad] on average."""


class HasGoals(Protocol):
    """The bus, as far as it matters here."""

    @property
    def goals(self) -> np.ndarray:
        """Goal of each joint, (14,) [rad]."""


class LiveDuck:
    """Ends a physics step where somebody reads, and weighs each goal by the part of a step it was in force.

    Physics at a beat of its own would answer with where the duck was up to a step before, and look at a goal
    up to a step too late; at a walk's joint speeds that is ten counts of an encoder. Steps are `STEP_S` long
    but for the one that a read ends. Thread-safe.

    Args:
        duck: what lives.
        bus: its goals.
        clock: the time [s].
        guard: makes a context that each step is in.
    """

    def __init__(
        self,
        duck: Stepped,
        bus: HasGoals,
        clock: Callable[[], float] = monotonic,
        guard: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._duck, self._bus, self._clock, self._guard = duck, bus, clock, guard
        self._lock = Lock()
        self._lived_s = self._noted_s = clock()
        self._goals = 0.0 * bus.goals  # integral since the last step [rad s]
        self._error: BaseException | None = None

    def hear(self, packet: Packet) -> None:
        """Live until a packet that reads, and note what is in force until one that writes.

        To be called before the packet is dealt with. An error is kept for whoever calls `live`.
        """
        with self._lock, ExitStack() as kept:
            kept.push(self._keep)
            self._catch_up(self._clock())
            now = self._clock()  # that took its time
            self._note(now)
            if packet.instruction in _READS and now - self._lived_s >= LOOK_S:
                self._step(now)

    def live(self) -> None:
        """Live until now, but for the last step, which a read may yet end.

        Raises:
            DuckError: the report of a run cannot be written.
            OSError: nothing can be told.
            BaseException: whatever else went wrong in `hear`.
        """
        with self._lock:
            if self._error:
                raise self._error
            self._catch_up(self._clock())

    def run(self, seconds: float | None, stop: Callable[[], bool], on_tick: Callable[[int], None]) -> None:
        """Live by the clock on the wall.

        Args:
            seconds: time until the return [s]; None until stopped.
            stop: asked at every tick, one each `STEP_S`, whether to stop.
            on_tick: told the number of each tick, at its end.
        """
        ticker = Ticker(STEP_S)
        end = None if seconds is None else ticker.now() + seconds
        while not stop() and (end is None or ticker.now() < end):
            ticker.wait()
            self.live()
            on_tick(ticker.ticks)

    def _keep(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Keep any error of the bus's thread, which must not die of it: a port that is deaf looks alive."""
        self._error = self._error or error
        return error is not None

    def _catch_up(self, now: float) -> None:
        if now - self._lived_s > MOST_CATCH_UP_S:
            self._lived_s = self._noted_s = now - MOST_CATCH_UP_S
            self._goals[:] = 0.0
        while now - self._lived_s > _LONGEST_S:
            self._step(max(self._lived_s + STEP_S, self._noted_s))

    def _note(self, now: float) -> None:
        self._goals += (now - self._noted_s) * self._bus.goals
        self._noted_s = now

    def _step(self, end: float) -> None:
        self._note(end)
        lasts = end - self._lived_s
        with self._guard():
            self._duck.step(lasts, self._goals / lasts)
        self._lived_s = end
        self._goals[:] = 0.0
