"""The fourteen policy servos as joint-ordered arrays in SI units, with the handshake before they may move."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from firmware_bridge import registers
from firmware_bridge.bus import Bus
from firmware_bridge.protocol import ALERT_BIT, Block
from firmware_bridge.registers import Register
from hardware import servo
from hardware.errors import BusError, DeviceError, SafetyError
from hardware.joints import JOINTS, MOUTH_ID, NUM_JOINTS, SERVO_IDS

PWM_SLOPE = 255
"""PWM slope of the robot's own runtime: the fastest rise of the motor voltage."""
_NAMES = {**{joint.servo_id: joint.name for joint in JOINTS}, MOUTH_ID: "mouth"}
_REQUIRED: tuple[tuple[Register, float], ...] = (
    (registers.RETURN_DELAY, 0.0),
    (registers.OPERATING_MODE, registers.POSITION_MODE),
    (registers.PWM_SLOPE, PWM_SLOPE),
    (registers.SHUTDOWN, servo.SHUTDOWN_MASK),
)
"""Settings a duck's servo must hold in its EEPROM; whoever builds the duck writes them once."""
_CENSUS = (registers.REALTIME_TICK.address, 27)
"""Clock to temperature: bytes in which two servos with one id cannot agree for long."""
_LOWEST, _HIGHEST = (
    (count - servo.POSITION_CENTRE) * servo.RADIANS_PER_COUNT for count in (0, servo.COUNTS_PER_TURN - 1)
)  # servo angles that a goal can express [rad]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServoSample:
    """What the servos measured, in joint order.

    Attributes:
        position: joint angles, (14,) [rad].
        velocity: joint velocities, (14,) [rad/s].
        current: motor currents, (14,) [A].
        alerts: error byte of each servo that raised its alert bit, by id.
    """

    position: np.ndarray
    velocity: np.ndarray
    current: np.ndarray
    alerts: dict[int, int]


class Servos:
    """The duck's servos on a bus.

    Args:
        bus: the bus.
        offsets: servo angle at each joint's zero, (14,) [rad]; none when omitted.
    """

    TICK_ADDRESS = registers.PRESENT_PWM.address
    TICK_LENGTH = 12
    _TICK = registers.block_dtype(
        TICK_ADDRESS,
        (
            registers.PRESENT_PWM,
            registers.PRESENT_CURRENT,
            registers.PRESENT_VELOCITY,
            registers.PRESENT_POSITION,
        ),
    )

    def __init__(self, bus: Bus, offsets: np.ndarray | None = None) -> None:
        self._bus = bus
        self._offsets = np.zeros(NUM_JOINTS) if offsets is None else np.asarray(offsets, dtype=np.float64)
        self._gain: int | None = None

    def check(self) -> None:
        """Prove that the expected servos are there and set up; writes nothing and moves nothing.

        The mouth's servo may be absent; one that is there must pass.

        Raises:
            DeviceError: a servo is missing, doubled, of another model, tripped, or holds a wrong setting.
            BusTimeoutError: a servo answered first and then no more.
        """
        present = [*SERVO_IDS, MOUTH_ID] if self._count_answers() else list(SERVO_IDS)
        for device in present:
            model, _ = self._bus.ping(device)
            if model != servo.MODEL_NUMBER:
                raise DeviceError(
                    f"{_name(device)} is {_model(model)}, but {_model(servo.MODEL_NUMBER)} is expected; "
                    "change the servo, since another model reads other values in the same registers"
                )
        for device in present:
            self._check_settings(device)

    def set_gain(self, p_gain: int) -> None:
        """Set the position P gain of all joints, with I and D zero; writes nothing when already set.

        Raises:
            SafetyError: the gain does not fit the register.
            DeviceError: a servo did not take it.
        """
        if p_gain == self._gain:
            return
        self._gain = None
        gains = (
            (registers.POSITION_D_GAIN, 0),
            (registers.POSITION_I_GAIN, 0),
            (registers.POSITION_P_GAIN, p_gain),
        )
        for register, value in gains:
            self._bus.sync_write(register, dict.fromkeys(SERVO_IDS, value))
        self._confirm(gains)
        self._gain = p_gain

    def hold_present(self) -> None:
        """Make every goal the present position, so that nothing moves when torque comes on.

        Raises:
            BusTimeoutError: a servo does not answer.
        """
        blocks = self._bus.sync_read(self.TICK_ADDRESS, self.TICK_LENGTH, SERVO_IDS)
        self.write_goals(self.decode(blocks).position)

    def enable(self, p_gain: int) -> None:
        """Set the gains, make the goals the present position, then switch torque on, in this order.

        A servo keeps its old goal while it is moved by hand, and would jump back to it. After an error some
        servos may hold torque: call `limp`.

        Args:
            p_gain: position P register.

        Raises:
            SafetyError: the gain does not fit the register.
            BusTimeoutError: a servo does not answer.
            DeviceError: a servo did not take the gain, or stays limp because it tripped.
        """
        self._gain = None  # a battery change since the last enable has reset the gains in the servos
        self.set_gain(p_gain)
        self.hold_present()
        self._bus.sync_write(registers.TORQUE_ENABLE, dict.fromkeys(SERVO_IDS, 1))
        self._confirm(((registers.TORQUE_ENABLE, 1),))

    def limp(self) -> None:
        """Switch torque off at every servo, the mouth's too, whatever fails on the way.

        One packet reaches all; each that does not read back as limp is then written on its own.

        Raises:
            DeviceError: names the joints that may still hold torque.
        """
        self._bus.sync_write(registers.TORQUE_ENABLE, dict.fromkeys((*SERVO_IDS, MOUTH_ID), 0))
        failed = []
        for device in self._unlike(((registers.TORQUE_ENABLE, 0),)):
            try:
                self._bus.write(device, registers.TORQUE_ENABLE, 0)
            except BusError as error:
                _log.error("%s", error)
                failed.append(device)
        if failed:
            raise DeviceError(f"torque may still be on at {_name(*failed)}; switch the battery off")

    def write_goals(self, targets: np.ndarray) -> None:
        """Send joint targets (14,) [rad] to all servos at once, kept within one servo turn.

        Raises:
            SafetyError: a target is not finite; nothing is sent.
        """
        angles = targets + self._offsets
        if angles.shape != (NUM_JOINTS,) or not np.isfinite(angles).all():
            raise SafetyError(f"targets must be {NUM_JOINTS} finite angles in rad, not {np.asarray(targets)}")
        angles = np.clip(angles, _LOWEST, _HIGHEST)
        self._bus.sync_write(registers.GOAL_POSITION, dict(zip(SERVO_IDS, angles.tolist(), strict=True)))

    def decode(self, blocks: Mapping[int, Block]) -> ServoSample:
        """Return the sample that the tick's blocks hold.

        Args:
            blocks: 12 bytes from address 124 of each servo, by id; blocks of other ids are ignored.
        """
        counts = np.frombuffer(b"".join(blocks[device].data for device in SERVO_IDS), self._TICK)
        position, velocity, current = (
            (counts[row.name] - row.centre) * row.factor
            for row in (registers.PRESENT_POSITION, registers.PRESENT_VELOCITY, registers.PRESENT_CURRENT)
        )
        alerts = {d: blocks[d].error for d in SERVO_IDS if blocks[d].error & ALERT_BIT}
        return ServoSample(position - self._offsets, velocity, current, alerts)

    def _count_answers(self) -> bool:
        """Refuse missing and doubled ids; return whether the mouth's servo is there."""
        answers = {device: self._answers_of(device) for device in (*SERVO_IDS, MOUTH_ID)}
        doubled = [device for device, found in answers.items() if found not in ((0, 0), (1, 0))]
        if doubled:
            raise DeviceError(
                f"more than one servo answers, or the line is disturbed, at {_name(*doubled)}; "
                "unplug servos one by one to find the second, and give it its own id"
            )
        missing = [device for device in SERVO_IDS if answers[device] == (0, 0)]
        if missing:
            others = sorted({found.id for found in self._bus.scan()} - {*_NAMES})
            raise DeviceError(
                f"no answer from {_name(*missing)}; other ids on this bus: {others or 'none'}. "
                "Check power and cables; a new servo answers as id 1, often at 57600 baud only"
            )
        return answers[MOUTH_ID] == (1, 0)

    def _answers_of(self, device: int) -> tuple[int, int]:
        found = self._bus.census(device, *_CENSUS)
        return found if found == (1, 0) else self._bus.census(device, *_CENSUS)  # noise rarely strikes twice

    def _check_settings(self, device: int) -> None:
        for register, expected in _REQUIRED:
            value = self._bus.read(device, register)
            if value != expected:
                unit = f" {register.unit}" if register.unit else ""
                raise DeviceError(
                    f"{_name(device)}: {register.name} (address {register.address}) is {value:g}{unit}, but "
                    f"{expected:g}{unit} is expected; set it with torque off, for example in Dynamixel Wizard"
                )
        self._refuse_tripped(device)

    def _confirm(self, values: Sequence[tuple[Register, float]]) -> None:
        """Read written values back, write those that differ once more, and refuse if that does not help.

        Written and read in a few packets for all, a change of gain fits in a tick; one acknowledged write per
        servo and register would take most of it.
        """
        for device in self._unlike(values):
            self._refuse_tripped(device)
            for register, value in values:
                self._bus.write(device, register, value)
        failed = self._unlike(values)
        if failed:
            names = ", ".join(f"{register.name} = {value:g}" for register, value in values)
            raise DeviceError(f"{_name(*failed)} did not take {names}; check cables and control table")

    def _unlike(self, values: Sequence[tuple[Register, float]]) -> list[int]:
        """Return the ids at which neighbouring registers do not read back as these values."""
        expected = b"".join(register.encode(value) for register, value in values)
        blocks = self._bus.sync_read_available(values[0][0].address, len(expected), SERVO_IDS)
        return [device for device in SERVO_IDS if device not in blocks or blocks[device].data != expected]

    def _refuse_tripped(self, device: int) -> None:
        """Refuse a servo that switched itself off; an input voltage error alone switches none of ours off."""
        bits = int(self._bus.read(device, registers.HARDWARE_ERROR)) & servo.SHUTDOWN_MASK
        if bits:
            causes = " + ".join(registers.hardware_errors(bits))
            raise DeviceError(
                f"{_name(device)} has tripped on {causes}; remove the cause, let it cool, then reboot it"
            )


def _name(*devices: int) -> str:
    return ", ".join(f"{_NAMES[device]} (id {device})" for device in devices)


def _model(number: int) -> str:
    return f"{servo.MODEL_NAMES.get(number, 'an unknown model')} ({number})"
