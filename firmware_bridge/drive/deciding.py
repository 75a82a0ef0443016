"""Which change of mode is due: danger first, then endings, then what is asked, then the usual course."""

from __future__ import annotations

from typing import NamedTuple

from firmware_bridge.commands.request import Event, Request
from firmware_bridge.drive import safety
from firmware_bridge.drive.modes import STIFF, Mode, ModeMachine, Order
from firmware_bridge.drive.motion import Motion
from firmware_bridge.drive.options import Hooks, LoopOptions
from firmware_bridge.drive.senses import Senses
from firmware_bridge.drive.watch import Watch
from firmware_bridge.robot.servos import WATCHDOG_S
from hardware.contract import CONTROL_PERIOD_S

SIT_MOST_S = 3.0
"""Longest time from the wish to sit to limp servos [s], whatever happens on the way."""


class Parts(NamedTuple):
    """What decisions are made from."""

    modes: ModeMachine
    senses: Senses
    watch: Watch
    motion: Motion


class Decider:
    """Decides on the next mode, at every tick.

    Args:
        parts: the state of the drive.
        options: how to drive.
        hooks: how the caller takes part.
        interactive: whether the duck waits for START; else to rise is a standing order, and one that cannot
            be obeyed is a fault.

    Attributes:
        driven_s: time the policy has driven [s].
        then: what follows the present SIT.
    """

    def __init__(self, parts: Parts, options: LoopOptions, hooks: Hooks, interactive: bool) -> None:
        self._modes, self._senses, self._watch, self._motion = parts
        self._options, self._hooks = options, hooks
        self._start = self._must_start = not interactive
        self._quit = self._lost = False
        self.driven_s = 0.0
        self.then = Mode.STOPPED

    def decide(self, request: Request, live: bool, silent_s: float) -> Order | None:
        """Return the change of mode that is due now, or None.

        Args:
            request: what is asked for.
            live: whether its command is new enough.
            silent_s: how long the servos may have heard nothing [s].
        """
        senses, mode = self._senses, self._modes.mode
        self._quit = self._quit or request.event is Event.QUIT  # handed out once, whatever else is due
        judged = None
        if senses.fresh and senses.sample is not None:
            judged = self._watch.judge(senses.sample, senses.gap, mode)
        if mode not in STIFF:
            return self._wait(request)
        danger = self._danger(silent_s)
        if mode is Mode.SIT:
            return danger or self._sit(request, judged)
        if request.event is Event.LIMP:
            return danger or Order(Mode.LIMP, "told to go limp")
        told = Order(Mode.SIT, "told to sit", Mode.LIMP) if request.event is Event.SIT else None
        return danger or judged or self._ending() or told or self._course(live)

    def feasible(self, order: Order) -> Order:
        """Return an order, or where it is to sit and the duck cannot, the order to go limp at once."""
        unable = self._unable_to_sit() if order.mode is Mode.SIT else None
        return Order(order.then, f"{order.reason}; limp at once, since {unable}") if unable else order

    def _unable_to_sit(self) -> str | None:
        sample = self._senses.sample
        if sample is None or self._senses.holding:
            return "it cannot be read"
        if not safety.upright(sample.gravity, self._options.limits):
            return "it is not upright"
        if self._motion.failed:
            return "the policy failed"
        return "it has not begun to rise" if self._motion.written is None else None

    def _danger(self, silent_s: float) -> Order | None:
        if silent_s > WATCHDOG_S:
            return Order(Mode.FAULT, f"the loop stood still for {silent_s:.2f} s, so the servos have stopped")
        lost = self._senses.lost
        return Order(Mode.FAULT, lost) if lost else None

    def _ending(self) -> Order | None:
        reason = self._hooks.stop()
        if reason is None and self._quit:
            reason = "told to end"
        seconds = self._options.seconds
        if reason is None and seconds is not None and self.driven_s >= seconds - CONTROL_PERIOD_S / 2:
            reason = "drove the time asked for"
        return None if reason is None else Order(Mode.SIT, reason, Mode.STOPPED)

    def _course(self, live: bool) -> Order | None:
        mode = self._modes.mode
        if mode is Mode.RISE and not self._motion.risen:
            return None
        wanted = Mode.RUN if live else Mode.STAND
        if mode is wanted:
            return None
        return Order(wanted, "the policy does what is asked" if live else "nobody steers: no live command")

    def _sit(self, request: Request, judged: Order | None) -> Order | None:
        ending = self._ending()
        if ending and self.then is Mode.LIMP:
            self.then, self._modes.reason = ending.then, ending.reason
        reason = self._modes.reason
        if judged and judged.mode is Mode.FAULT:
            return judged
        if judged and judged.mode is Mode.FALLEN:
            return Order(self.then, f"{reason}; it fell on the way down")
        if self._senses.holding:
            return Order(self.then, f"{reason}; limp on the way down, since it cannot be read")
        if request.event is Event.LIMP or self._hooks.hurry():
            return Order(self.then, f"{reason}; limp at once, as asked")
        if self._motion.seated or self._modes.seconds >= SIT_MOST_S:
            return Order(self.then, reason)
        return None

    def _wait(self, request: Request) -> Order | None:
        """Decide in a mode without torque."""
        self._tell_contact()
        ending = self._ending()
        if ending:
            return Order(Mode.STOPPED, ending.reason)
        if request.event is Event.LIMP:  # torque off again, in case a servo was switched on by someone else
            self._start = self._must_start = False
            return Order(Mode.LIMP, "told to go limp")
        self._start = self._start or request.event is Event.START
        return self._rise() if self._start else None

    def _rise(self) -> Order | None:
        sample, refusal = self._senses.sample, self._senses.lost
        if self._senses.fresh and sample is not None:
            refusal = self._watch.refusal(sample)
            if refusal is None:
                self._start = self._must_start = False
                return Order(Mode.RISE, "torque on, to the standing pose")
        if refusal is None:
            return None  # a sample may come yet
        self._start = False
        if self._must_start:
            return Order(Mode.FAULT, refusal)
        self._hooks.on_news(f"cannot start: {refusal}")
        return None

    def _tell_contact(self) -> None:
        lost = self._senses.lost
        if (lost is not None) is not self._lost:
            self._lost = lost is not None
            self._hooks.on_news(lost or "the duck can be read again")
