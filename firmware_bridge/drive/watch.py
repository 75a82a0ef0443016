"""What the sensors say over time: falls, heat, current, charge and lost servos, as orders to the loop."""

from __future__ import annotations

from collections.abc import Callable
from math import acos, degrees

from firmware_bridge.drive import safety
from firmware_bridge.drive.limits import Battery, Limits
from firmware_bridge.drive.modes import STIFF, Mode, Order
from firmware_bridge.robot.body import BodySample, Health
from hardware.contract import CONTROL_PERIOD_S
from hardware.joints import JOINT_NAMES, NUM_JOINTS


class Watch:
    """Judges every sample.

    Args:
        limits: where to step in.
        battery: what feeds the servos.
        tell: told, once each, what the user should know and the loop need not act on.
    """

    def __init__(self, limits: Limits, battery: Battery, tell: Callable[[str], None]) -> None:
        self._limits, self._battery, self._tell = limits, battery, tell
        self._health: Health | None = None
        self._warned: set[str] = set()
        self._voltage: float | None = None
        self.begin()

    def begin(self) -> None:
        """Forget what lasted, before a rise: a fall that is over, a current that no longer flows."""
        self._leaning_s = self._aslant_s = 0.0
        self._tipping = 0
        self._overcurrent_s = [0.0] * NUM_JOINTS

    def judge(self, sample: BodySample, periods: int, mode: Mode) -> Order | None:
        """Take a new sample in and return what must change, None when all is well or nothing is stiff.

        Args:
            sample: the sample.
            periods: control periods since the one before.
            mode: the present mode.
        """
        self._count(sample, periods)
        health = None if sample.health is self._health else sample.health
        if health is not None:
            self._take(health)
        if mode not in STIFF:
            return None
        return self._broken(health) or self._fall(mode) or self._worn(health)

    def refusal(self, sample: BodySample) -> str | None:
        """Return why the duck must not rise now and what to do, None when it may."""
        if safety.leans(sample.gravity, self._limits):
            lean = _degrees(self._limits.fall_gravity_z)
            return f"the duck leans more than {lean}; hold it upright and start again"
        health = self._health
        if health is None:
            return None
        if tripped := safety.tripped(health):
            return f"{', '.join(tripped)}; remove the cause, let it cool, then reboot it"
        if hot := safety.hot(health, self._limits.temperature_limit):
            return f"too hot: {', '.join(hot)}; let it cool and start again"
        return self._empty()

    def _count(self, sample: BodySample, periods: int) -> None:
        limits, passed = self._limits, periods * CONTROL_PERIOD_S
        self._leaning_s = self._leaning_s + passed if safety.leans(sample.gravity, limits) else 0.0
        self._aslant_s = 0.0 if safety.upright(sample.gravity, limits) else self._aslant_s + passed
        # Samples, not time: one bad sample after a gap must not pass for a fall.
        tips = safety.tips(sample.gravity, sample.angular_velocity, limits)
        self._tipping = self._tipping + 1 if tips else 0
        self._overcurrent_s = safety.overcurrent_s(self._overcurrent_s, sample.current, periods, limits)

    def _take(self, health: Health) -> None:
        if self._health is None or health.voltage is not self._health.voltage:
            self._voltage = safety.smooth_voltage(self._voltage, health)
        self._health = health
        for text in safety.hot(health, self._limits.temperature_warn):
            name = text.split()[0]
            if name not in self._warned:
                self._warned.add(name)
                self._tell(f"{text}: hot; at {self._limits.temperature_limit:g} deg C the duck sits down")

    def _broken(self, health: Health | None) -> Order | None:
        lost = safety.lost_servos(health) if health else ()
        return Order(Mode.FAULT, ", ".join(lost)) if lost else None

    def _fall(self, mode: Mode) -> Order | None:
        limits = self._limits
        if self._leaning_s >= limits.fall_s - CONTROL_PERIOD_S / 2:
            lean = _degrees(limits.fall_gravity_z)
            return Order(Mode.FALLEN, f"the trunk leaned more than {lean} for {limits.fall_s:g} s")
        # A rise is held by hand and a sit may lean on its way down.
        if mode not in (Mode.STAND, Mode.RUN):
            return None
        if self._tipping >= limits.tip_ticks:
            return Order(Mode.FALLEN, "the trunk was tipping over, so it was let go before it hit the floor")
        if self._aslant_s >= limits.lean_s - CONTROL_PERIOD_S / 2:
            lean = _degrees(limits.tip_gravity_z)
            return Order(Mode.FALLEN, f"the trunk leaned more than {lean} for {limits.lean_s:g} s")
        return None

    def _worn(self, health: Health | None) -> Order | None:
        hot = safety.hot(health, self._limits.temperature_limit) if health else ()
        if hot:
            return Order(Mode.SIT, f"too hot: {', '.join(hot)}", Mode.FAULT)
        longest_s = max(self._overcurrent_s)
        if longest_s >= self._limits.current_s - CONTROL_PERIOD_S / 2:
            joint = JOINT_NAMES[self._overcurrent_s.index(longest_s)]
            text = f"{joint} took more than {self._limits.current:g} A for"
            return Order(Mode.SIT, f"{text} {self._limits.current_s:g} s; is it blocked?", Mode.FAULT)
        empty = self._empty() if health else None
        return Order(Mode.SIT, empty, Mode.FAULT) if empty else None

    def _empty(self) -> str | None:
        if self._voltage is None or safety.charge(self._voltage, self._battery) != 0.0:
            return None
        return f"the battery is empty: {self._voltage:.1f} V; charge it"


def _degrees(gravity_z: float) -> str:
    return f"{degrees(acos(-gravity_z)):.0f} degrees"
