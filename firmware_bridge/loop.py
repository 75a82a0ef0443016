"""The drive: rise, then read -> observe -> infer -> guard -> write at every tick, and limp at every end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from firmware_bridge import safety
from firmware_bridge.body import Body, BodySample
from firmware_bridge.clock import Ticker
from firmware_bridge.commands import CommandSource
from firmware_bridge.controller import Controller
from firmware_bridge.manifest import Skill
from firmware_bridge.modes import RISE_S, Mode, ModeMachine, rise_pose
from firmware_bridge.skills import Bundle
from firmware_bridge.summary import Summary, Tally, Tick
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import BundleError, BusError, SafetyError


@dataclass(frozen=True)
class Hooks:
    """How the caller takes part.

    Attributes:
        stop: returns why to stop, or None to go on; asked at every tick.
        on_mode: told of each new mode and its reason.
        on_tick: told of each tick.
        ticker: wakes the loop.
    """

    stop: Callable[[], str | None] = lambda: None
    on_mode: Callable[[Mode, str], None] = lambda mode, reason: None
    on_tick: Callable[[Tick], None] = lambda tick: None
    ticker: Ticker = field(default_factory=Ticker)


def run(
    body: Body, bundle: Bundle, skill: Skill, commands: CommandSource, seconds: float | None, hooks: Hooks
) -> Summary:
    """Let the duck rise and drive one skill, and leave it limp however that ends.

    Args:
        body: the duck; nothing has been written to it yet.
        bundle: the policy.
        skill: one of the bundle's skills.
        commands: what is asked of the skill.
        seconds: time to drive after the rise [s]; None drives until stopped.
        hooks: how the caller takes part.

    Returns:
        Counts, and the end: STOPPED as asked or by `hooks.stop`, FALLEN or FAULT.
    """
    drive = _Drive(body, bundle, skill, commands, hooks)
    try:
        drive.start(bundle.p_gain)
        drive.loop(seconds)
    finally:
        drive.limp()
    return drive.summary()


_ACTIVE = (Mode.RISE, Mode.RUN)


class _Drive:
    """One drive from limp to limp; all times are whole control periods."""

    def __init__(
        self, body: Body, bundle: Bundle, skill: Skill, commands: CommandSource, hooks: Hooks
    ) -> None:
        self._body, self._commands, self._hooks = body, commands, hooks
        self._controller = Controller(bundle, skill)
        self._modes = ModeMachine(hooks.on_mode)
        self._tally = Tally()
        self._sample: BodySample | None = None
        self._start_pose: np.ndarray | None = None
        self._targets: np.ndarray | None = None
        self._mode_periods = 0  # of the rise that are done, or of driving
        self._blind_periods = 0  # since the last sample
        self._leaning_periods = 0
        self._bus_error = "none"

    def start(self, p_gain: int) -> None:
        asked = self._hooks.stop()
        if asked is not None:
            self._modes.change(Mode.STOPPED, asked)
            return
        self._modes.change(Mode.RISE, "torque on, to the standing pose")
        try:
            self._body.enable(p_gain)
        except BusError as error:
            self._modes.change(Mode.FAULT, str(error))

    def loop(self, seconds: float | None) -> None:
        last = None if seconds is None else round(seconds / CONTROL_PERIOD_S)
        while self._modes.mode in _ACTIVE:
            periods = self._hooks.ticker.wait() + 1
            try:
                self._tick(periods, last)
            except (SafetyError, BundleError) as error:
                self._modes.change(Mode.FAULT, str(error))

    def limp(self) -> None:
        try:
            self._body.limp()
        except BusError as error:
            advice = "torque may be on, switch the servos' power off"
            reason = f"{self._modes.reason}; {advice} ({error})"
            self._modes.change(Mode.FAULT, reason)
        if self._modes.mode in _ACTIVE:
            self._modes.change(Mode.FAULT, "an error ended the loop")

    def summary(self) -> Summary:
        ticker = self._hooks.ticker
        return Summary(
            mode=self._modes.mode,
            reason=self._modes.reason,
            run_s=self._mode_periods * CONTROL_PERIOD_S if self._tally.policy_ticks else 0.0,
            ticks=ticker.ticks,
            missed=ticker.missed,
            rate_hz=ticker.rate_hz,
            worst_lateness_s=ticker.worst_lateness_s,
            mean_work_s=ticker.mean_work_s,
            worst_work_s=ticker.worst_work_s,
            tally=self._tally,
            commands_refused=self._commands.refused,
        )

    def _tick(self, periods: int, last: int | None) -> None:
        fresh = self._read(periods)
        self._pass_time(periods)
        end = self._verdict(periods, last)
        if end:
            self._modes.change(*end)
            return
        targets = self._choose_targets()
        if targets is not None and self._targets is not None:
            self._write(targets, self._targets)
        self._report(fresh)

    def _read(self, periods: int) -> bool:
        try:
            sample = self._body.read()
        except BusError as error:
            self._count(error)
            self._blind_periods += periods
            return False
        since = self._blind_periods + periods
        self._leaning_periods = safety.leaning_periods(self._leaning_periods, sample.gravity, since)
        self._blind_periods = 0
        self._tally.alerts.update(sample.alerts)
        self._sample = sample
        return True

    def _pass_time(self, periods: int) -> None:
        if self._sample is None:
            return  # nothing begins before the duck has been seen
        if self._modes.mode is Mode.RUN:
            self._mode_periods += periods
            request = safety.live_command(*self._commands.latest())
            self._controller.advance(request, self._sample, periods)
        elif self._start_pose is None:
            self._start_pose = self._targets = self._sample.position
        elif not self._holding:  # a ramp that ran on unseen would end in a jump
            self._mode_periods += periods
            if self._mode_periods * CONTROL_PERIOD_S >= RISE_S:
                self._mode_periods = 0
                self._modes.change(Mode.RUN, "the policy drives")

    @property
    def _holding(self) -> bool:
        return self._blind_periods > safety.COAST_READS

    def _verdict(self, periods: int, last: int | None) -> tuple[Mode, str] | None:
        """Return how the drive ends now, None when it goes on."""
        asked = self._hooks.stop()
        if asked is not None:
            return Mode.STOPPED, asked
        if periods > safety.FAULT_PERIODS:
            return Mode.FAULT, f"the loop stood still for {periods * CONTROL_PERIOD_S:.2f} s"
        if self._blind_periods >= safety.FAULT_PERIODS:
            lost = self._blind_periods * CONTROL_PERIOD_S
            return Mode.FAULT, f"no sample for {lost:.2f} s, last because: {self._bus_error}"
        if self._leaning_periods >= safety.FALL_PERIODS:
            return Mode.FALLEN, "the trunk leaned more than 60 degrees for 0.2 s"
        if self._modes.mode is Mode.RUN and last is not None and self._mode_periods >= last:
            return Mode.STOPPED, "drove the time asked for"
        return None

    def _choose_targets(self) -> np.ndarray | None:
        if self._sample is None or self._start_pose is None:
            return None
        if self._modes.mode is Mode.RISE:
            return rise_pose(self._start_pose, self._mode_periods * CONTROL_PERIOD_S)
        if self._holding:
            self._tally.held_ticks += 1
            return self._targets
        self._tally.policy_ticks += 1
        return self._controller.targets(self._sample)

    def _write(self, targets: np.ndarray, previous: np.ndarray) -> None:
        limited = safety.limit_targets(targets, previous)
        self._tally.slewed += limited.slewed
        self._tally.clamped += limited.clamped
        self._targets = limited.targets
        try:
            self._body.write(limited.targets)
        except BusError as error:
            self._count(error)

    def _count(self, error: BusError) -> None:
        name = type(error).__name__
        self._tally.bus_errors[name] = self._tally.bus_errors.get(name, 0) + 1
        self._bus_error = str(error)

    def _report(self, fresh: bool) -> None:
        state = self._controller.state
        self._hooks.on_tick(
            Tick(
                mode=self._modes.mode,
                mode_s=self._mode_periods * CONTROL_PERIOD_S,
                sample=self._sample,
                fresh=fresh,
                command=state.command,
                observation=self._controller.observation,
                targets=self._targets,
                bus_errors=sum(self._tally.bus_errors.values()),
            )
        )
