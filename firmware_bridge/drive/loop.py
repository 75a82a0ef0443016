"""The drive: at every tick read, decide on the mode, move and tell; and one way out, whatever ends it."""

from __future__ import annotations

import numpy as np

from firmware_bridge.commands.request import NO_COMMAND, NO_HEAD, CommandSource, Request
from firmware_bridge.drive import safety
from firmware_bridge.drive.deciding import Decider, Parts
from firmware_bridge.drive.modes import ENDS, STIFF, Mode, ModeMachine, Order
from firmware_bridge.drive.motion import Aim, Asked, Motion
from firmware_bridge.drive.options import Hooks, LoopOptions
from firmware_bridge.drive.realtime import quiet_collector
from firmware_bridge.drive.senses import Senses
from firmware_bridge.drive.summary import STAGES, StageTimes, Summary, Tally, Tick
from firmware_bridge.drive.watch import Watch
from firmware_bridge.robot.body import Body
from firmware_bridge.skills.bundle import Bundle
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import BundleError, BusError, SafetyError

__all__ = ["Hooks", "LoopOptions", "run"]

RESERVE_S = 0.004
"""Part of a tick that a read leaves for policy, write and whoever watches [s]; the write takes 0.9 ms."""
LIMP_TRIES = 2
"""How often torque is switched off before the user is told to do it."""
_ERROR = "an error ended the loop"
_NOBODY = Request(None, NO_COMMAND, NO_HEAD, float("inf"), None)


def run(body: Body, bundle: Bundle, source: CommandSource, options: LoopOptions, hooks: Hooks) -> Summary:
    """Drive a duck until something ends it, and leave it limp however that happens.

    Nothing moves at first: an interactive source must give START. Another one is itself the order to rise.

    Args:
        body: the duck; nothing has been written to it yet.
        bundle: the policy.
        source: what is asked of it; it stays open.
        options: how to drive.
        hooks: how the caller takes part.

    Returns:
        Counts, and the end: STOPPED as asked, FAULT, or FALLEN where the source is not interactive.

    Raises:
        BundleError: the bundle has no skill of that name; nothing moved.
    """
    loop = _Loop(body, bundle, source, options, hooks)
    with quiet_collector():
        try:
            loop.run()
        finally:
            loop.end()
    return loop.summary()


class _Loop:
    """One drive from limp to limp; all times are whole control periods."""

    def __init__(
        self, body: Body, bundle: Bundle, source: CommandSource, options: LoopOptions, hooks: Hooks
    ) -> None:
        self._body, self._source, self._options, self._hooks = body, source, options, hooks
        self._gain = bundle.p_gain if options.p_gain is None else options.p_gain
        self._tally, self._times = Tally(), StageTimes()
        self._modes = ModeMachine(hooks.on_mode)
        self._senses = Senses(body, options.limits, self._tally)
        self._watch = Watch(options.limits, options.battery, hooks.on_news)
        self._motion = Motion(bundle, options.skill, options.limits)
        parts = Parts(self._modes, self._senses, self._watch, self._motion)
        self._decider = Decider(parts, options, hooks, source.interactive)
        self._listens = True
        self._limited: tuple[str, ...] = ()
        self._unknown_skill: str | None = None
        self._heard_s = 0.0

    def run(self) -> None:
        while not self._over:
            self._tick(self._hooks.ticker.wait() + 1)

    def end(self) -> None:
        """Take the way out that is still to go, after an error too."""
        try:
            if self._modes.mode in STIFF:
                self._listens = False  # whoever raised it may do so again
                self._sit_down()
                self.run()
        finally:
            if not self._over:
                self._obey(Order(Mode.FAULT, _ERROR))

    def summary(self) -> Summary:
        ticker = self._hooks.ticker
        return Summary(
            mode=self._modes.mode,
            reason=self._modes.reason,
            run_s=self._decider.driven_s,
            ticks=ticker.ticks,
            missed=ticker.missed,
            rate_hz=ticker.rate_hz,
            worst_lateness_s=ticker.worst_lateness_s,
            mean_work_s=ticker.mean_work_s,
            worst_work_s=ticker.worst_work_s,
            stages=self._times.table(),
            tally=self._tally,
            commands_refused=self._source.refused,
        )

    @property
    def _over(self) -> bool:
        mode = self._modes.mode
        return mode in ENDS or (mode is Mode.FALLEN and not self._source.interactive)

    def _tick(self, periods: int) -> None:
        ticker = self._hooks.ticker
        self._senses.read(periods, ticker.next_s - RESERVE_S)
        read_s = ticker.now()
        silent_s, self._heard_s = read_s - self._heard_s, read_s
        request = self._source.latest() if self._listens else _NOBODY
        live = request.age_s < self._options.limits.deadman_s
        self._limited, self._motion.asked = (), Asked()
        self._pass_time(periods, self._aim(request))
        order = self._decider.decide(request, live, silent_s)
        obeying_s = self._time_to_obey(order) if order else 0.0
        targets = self._targets()
        decided_s = ticker.now()
        if targets is not None:
            self._write(targets)
        written_s = ticker.now() - decided_s
        policy_s = decided_s - read_s - obeying_s  # a change of mode writes: gains, torque
        times = (read_s - ticker.started_s, policy_s, written_s + obeying_s, ticker.idle_s)
        self._report(request, dict(zip(STAGES, times, strict=True)))

    def _aim(self, request: Request) -> Aim:
        """Return what is asked for, as far as it may be done in this mode."""
        self._choose(request.skill)
        if self._modes.mode not in (Mode.STAND, Mode.RUN):
            return Aim()
        command, head = safety.finite(request.command), safety.finite(request.head)
        live = safety.live_command(command.applied, request.age_s, self._options.limits)
        self._limited += command.limited_by + live.limited_by + head.limited_by
        return Aim(live.applied, head.applied)

    def _choose(self, skill: str | None) -> None:
        known = skill is None or self._motion.choose(skill)
        if not known:
            self._limited += ("skill",)
            if skill != self._unknown_skill:
                self._hooks.on_news(f"the bundle has no skill {skill!r}; it has {self._motion.skills}")
        self._unknown_skill = None if known else skill

    def _pass_time(self, periods: int, aim: Aim) -> None:
        mode, sample = self._modes.mode, self._senses.sample
        self._modes.periods += periods
        if mode in (Mode.STAND, Mode.RUN):
            self._decider.driven_s += periods * CONTROL_PERIOD_S
            self._tally.missed_driving += periods - 1
        # A rise that ran on unseen would end in a jump.
        if mode in STIFF and sample is not None and (mode is not Mode.RISE or self._senses.fresh):
            self._motion.advance(mode, aim, sample, periods)

    def _time_to_obey(self, order: Order) -> float:
        """Obey an order and return how long that took [s]."""
        begin_s = self._hooks.ticker.now()
        self._obey(order)
        return self._hooks.ticker.now() - begin_s

    def _obey(self, order: Order) -> None:
        order = self._decider.feasible(order)
        if order.mode not in STIFF:
            order = self._switch_off(order)
        walked = self._modes.mode in (Mode.STAND, Mode.RUN)
        self._modes.change(order.mode, order.reason)
        if order.mode is Mode.SIT:
            self._decider.then = order.then
            self._motion.begin_sit(walked)
        elif order.mode is Mode.RISE:
            self._switch_on()

    def _sit_down(self) -> None:
        """Begin to sit down because of an error, or go on with it."""
        order = self._decider.feasible(Order(Mode.SIT, _ERROR, Mode.FAULT))
        if order.mode is self._modes.mode:
            self._decider.then, self._modes.reason = order.then, order.reason
        else:
            self._obey(order)

    def _switch_on(self) -> None:
        self._watch.begin()
        self._motion.begin_rise()
        try:
            self._body.enable(self._gain)
        except (BusError, SafetyError) as error:
            self._obey(Order(Mode.FAULT, str(error)))
        self._heard_s = self._hooks.ticker.now()

    def _switch_off(self, order: Order) -> Order:
        """Make the duck limp and return the order, or that to tell the user to do it."""
        for _ in range(LIMP_TRIES):
            try:
                self._body.limp()
            except BusError as error:
                advice = f"torque may be on, switch the servos' power off ({error})"
            else:
                return order
        return Order(Mode.FAULT, f"{order.reason}; {advice}")

    def _targets(self) -> np.ndarray | None:
        """Return what to write, (14,) [rad], None for nothing."""
        mode, sample, motion = self._modes.mode, self._senses.sample, self._motion
        if mode not in STIFF or sample is None:
            return None
        if self._senses.holding:
            self._tally.held_ticks += 1
            self._limited += ("held",)
            return motion.written
        try:
            limited = motion.targets(mode, sample)
        except (SafetyError, BundleError) as error:
            self._obey(Order(Mode.FAULT, str(error)))
            return None
        if limited is None:
            return None
        if mode in (Mode.STAND, Mode.RUN):
            self._tally.policy_ticks += 1
            self._limited += motion.controller.limited_by
        self._limited += limited.limited_by
        return limited.applied

    def _write(self, targets: np.ndarray) -> None:
        try:
            self._body.write(targets)
        except BusError as error:
            self._senses.note(error)

    def _report(self, request: Request, stages: dict[str, float]) -> None:
        ticker, controller, mode = self._hooks.ticker, self._motion.controller, self._modes.mode
        self._times.add(stages)
        if self._limited:
            self._tally.limited.update(self._limited)
        self._hooks.on_tick(
            Tick(
                time_s=ticker.started_s,
                mode=mode,
                reason=self._modes.reason,
                mode_s=self._modes.seconds,
                skill=controller.skill.name,
                sample=self._senses.sample,
                fresh=self._senses.fresh,
                requested=request.command,
                command=controller.state.command,
                head=controller.state.head,
                limited_by=self._limited,
                observation=controller.observation,
                action=self._motion.asked.action,
                requested_targets=self._motion.asked.targets,
                targets=self._motion.written if mode in STIFF else None,
                rate_hz=ticker.recent_hz,
                missed=ticker.missed,
                stages=stages,
                bus_errors=self._tally.bus_errors.total(),
            )
        )
