"""One joint that moves, slowly and weakly, while no other servo is spoken to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import NamedTuple

from firmware_bridge.robot import servos
from firmware_bridge.robot.devices import name_of
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from hardware.calibration import MAX_OFFSET
from hardware.errors import BusTimeoutError, CalibrationError, DeviceError
from hardware.joints import Joint

P_GAIN = 100
"""P register of the moving joint, half a walking duck's: 0.28 N m/rad."""
MOST_PWM = 133
"""Goal PWM, 15 % of full voltage: 0.14 N m in stall at 7.4 V, enough to lift the head and too little to hurt.
In position mode a servo heeds no other limit of its torque."""
RATE = 0.25
"""Fastest the goal moves [rad/s]."""
LEAD = 0.4
"""Farthest the goal is from the joint [rad]: one that is blocked builds up no more than 0.11 N m."""
REACH = MAX_OFFSET + LEAD
"""Farthest goal from a servo's centre [rad], unless it begins farther out: no zero lies beyond."""
_LONGEST_PAUSE = 0.1
"""Most time that counts between two ticks [s]; after a longer one the goal is not to leap."""
_START = registers.TORQUE_ENABLE.address
_STATE = registers.block_struct(
    _START,
    registers.TORQUE_ENABLE,
    registers.BUS_WATCHDOG,
    registers.PRESENT_POSITION,
)
_GAINS = registers.POSITION_D_GAIN.address
_GAIN_BYTES = 6  # D, I and P


class Motion(NamedTuple):
    """Where a joint is.

    Attributes:
        angle: present angle of the servo [rad].
        goal: the goal it was sent [rad], None while it is limp.
        arrived: whether the goal is where the user wants it, or can go no farther.
    """

    angle: float
    goal: float | None
    arrived: bool


class JointMover:
    """The one joint that may move.

    It is limp until `hold`, and from then on needs a `tick` every 0.1 s: the servo's bus watchdog lets go of
    it after 0.2 s of silence.

    Args:
        bus: the bus; every other servo on it is limp.
        joint: the joint.
        now: monotonic time [s].
    """

    def __init__(self, bus: Bus, joint: Joint, now: Callable[[], float] = monotonic) -> None:
        self._bus, self._id, self._name, self._now = bus, joint.servo_id, joint.name, now
        self._farthest = (joint.low - MAX_OFFSET, joint.high + MAX_OFFSET)
        self._kept: tuple[bytes, bytes] | None = None
        self._held = False
        self._goal = self._wanted = self._ticked = 0.0
        self._bounds = (-REACH, REACH)
        self._sent = 0

    @property
    def held(self) -> bool:
        """Whether the servo holds the joint."""
        return self._held

    def hold(self) -> None:
        """Let the servo hold the joint where it is.

        Raises:
            CalibrationError: the joint is outside of its range.
            BusTimeoutError: the servo did not take it all, and was let go again.
            BusError: as for `release`.
        """
        if self._held:
            return
        angle = self._state()[2]
        low, high = self._farthest
        if not low <= angle <= high:
            raise CalibrationError(
                f"{self._name} is at {angle:+.2f} rad, outside of {low:+.2f} to {high:+.2f}; turn it by hand "
                "first"
            )
        self._held = True  # from here on it has to be let go, whatever fails
        try:
            self._stiffen()
        except BusTimeoutError:
            self.release()
            raise

    def _stiffen(self) -> None:
        """Make the servo weak and watched where the joint is, and torque comes on last."""
        self._keep_settings()
        self._put(registers.BUS_WATCHDOG, 0)
        self._put(registers.GOAL_PWM, min(MOST_PWM, self._bus.read(self._id, registers.PWM_LIMIT)))
        for register, gain in (
            (registers.POSITION_D_GAIN, 0),
            (registers.POSITION_I_GAIN, 0),
            (registers.POSITION_P_GAIN, P_GAIN),
        ):
            self._put(register, gain)
        angle = self._state()[2]
        self._goal = self._wanted = angle
        self._bounds = (min(angle, -REACH), max(angle, REACH))
        self._put(registers.GOAL_POSITION, angle)
        self._sent = _count(angle)
        self._put(registers.BUS_WATCHDOG, servos.WATCHDOG_S)
        self._ticked = self._now()
        self._put(registers.TORQUE_ENABLE, 1)

    def nudge(self, step: float) -> None:
        """Ask for an angle that is `step` [rad] beyond the one asked for last.

        Raises:
            CalibrationError: the joint is limp.
        """
        if not self._held:
            raise CalibrationError(
                f"{self._name} is limp; press h to let its servo hold it, or turn it by hand"
            )
        low, high = self._bounds
        self._wanted = min(max(self._wanted + step, low), high)

    def tick(self) -> Motion:
        """Move the goal on by what the rate allows, and return where the joint is.

        Raises:
            CalibrationError: the servo let go by itself; the joint is limp, and can be held again.
            BusError: the servo does not answer.
        """
        torque, watchdog, angle = self._state()
        if not self._held:
            return Motion(angle, None, True)
        if not torque or watchdog < 0:
            self.release()
            raise CalibrationError(
                f"{self._name} let go by itself, since the bus was silent or the servo tripped; press h again"
            )
        now = self._now()
        reach = RATE * min(now - self._ticked, _LONGEST_PAUSE)
        self._ticked = now
        wanted = min(max(self._wanted, angle - LEAD), angle + LEAD)
        self._goal += min(max(wanted - self._goal, -reach), reach)
        if _count(self._goal) != self._sent:
            self._put(registers.GOAL_POSITION, self._goal)
            self._sent = _count(self._goal)
        return Motion(angle, self._goal, abs(self._goal - wanted) < registers.GOAL_POSITION.factor / 2)

    def release(self) -> None:
        """Let go of the joint, and give the servo the gains and the PWM back that it had.

        Raises:
            BusError: the port is gone.
            DeviceError: torque may still be on, or it is limp and has not got back what it had.
        """
        if not self._held:
            return
        if not _tried(self._let_go):
            raise DeviceError(f"torque may still be on at {name_of(self._id)}; switch the battery off")
        self._held = False
        if not _tried(self._give_back):
            raise DeviceError(
                f"{name_of(self._id)} is limp, but does not take its former gains; switch the battery off "
                "and on, which gives it those of the factory"
            )

    def _let_go(self) -> bool:
        self._bus.write(self._id, registers.TORQUE_ENABLE, 0)
        return self._bus.read(self._id, registers.TORQUE_ENABLE) == 0

    def _give_back(self) -> bool:
        self._put(registers.BUS_WATCHDOG, 0)
        if self._kept is not None:
            gains, pwm = self._kept
            self._bus.write_bytes(self._id, _GAINS, gains, "its former gains")
            self._bus.write_bytes(self._id, registers.GOAL_PWM.address, pwm, "its former goal_pwm")
        return True

    def _keep_settings(self) -> None:
        if self._kept is None:
            gains = self._read(_GAINS, _GAIN_BYTES)
            self._kept = (gains, self._read(registers.GOAL_PWM.address, registers.GOAL_PWM.width))

    def _put(self, register: registers.Register, value: float) -> None:
        self._bus.write(self._id, register, value)

    def _state(self) -> tuple[bool, int, float]:
        """Return whether torque is on, the bus watchdog's count, and the present angle [rad]."""
        torque, watchdog, position = _STATE.unpack(self._read(_START, _STATE.size))
        register = registers.PRESENT_POSITION
        return bool(torque), watchdog, (position - register.centre) * register.factor

    def _read(self, address: int, length: int) -> bytes:
        return self._bus.sync_read(address, length, (self._id,))[self._id].data


def _tried(action: Callable[[], bool]) -> bool:
    """Return whether an action did what it was to do, within as many tries as letting go of the duck gets."""
    for _ in range(servos.LIMP_TRIES):
        with suppress(BusTimeoutError):
            if action():
                return True
    return False


def _count(angle: float) -> int:
    return round(angle / registers.GOAL_POSITION.factor)
