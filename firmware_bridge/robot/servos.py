"""The fourteen policy servos as joint-ordered arrays in SI units, with the handshake before they may move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from struct import Struct
from time import sleep

import numpy as np

from firmware_bridge.robot.devices import ALL_SERVO_IDS, model_name, name_of
from firmware_bridge.robot.presence import Presence, presence
from firmware_bridge.robot.settings import SETTINGS
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import ALERT_BIT, Block
from firmware_bridge.wire.registers import Register
from hardware import servo
from hardware.errors import DeviceError, SafetyError
from hardware.joints import MOUTH_ID, NUM_JOINTS, SERVO_IDS

WATCHDOG_S = 0.2
"""Silence on the bus after which a servo stops by itself [s]: ten ticks, more than the loop ever stumbles."""
LIMP_TRIES = 5
"""How often torque is switched off while a servo does not read back as limp; where nobody answers it takes
45 ms each time, so the whole attempt a quarter of a second."""
REBOOT_S = 0.5
"""Time after which a restarted servo answers again [s], as the robot's own runtime waits."""
_TICK = registers.block_struct(
    registers.PRESENT_PWM.address,
    registers.PRESENT_CURRENT,
    registers.PRESENT_VELOCITY,
    registers.PRESENT_POSITION,
)
_GOAL = registers.GOAL_POSITION
_GOAL_ROWS = Struct("<" + "Bi" * NUM_JOINTS)
_LOWEST, _HIGHEST = 0, servo.COUNTS_PER_TURN - 1  # counts that a goal can be


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

    def __init__(self, bus: Bus, offsets: np.ndarray | None = None) -> None:
        self._bus = bus
        self._offsets: list[float] = [0.0] * NUM_JOINTS if offsets is None else offsets.tolist()
        self._gain: int | None = None

    def check(self) -> None:
        """Prove that the expected servos are there and set up; writes nothing and moves nothing.

        The mouth's servo may be absent; one that is there must pass.

        Raises:
            DeviceError: a servo is missing, doubled, of another model, tripped, or holds a wrong setting.
            BusTimeoutError: a servo answered first and then no more.
        """
        present = ALL_SERVO_IDS if self._has_mouth() else SERVO_IDS
        for device in present:
            model, _ = self._bus.ping(device)
            if model != servo.MODEL_NUMBER:
                raise DeviceError(
                    f"{name_of(device)} is {model_name(model)}, but {model_name(servo.MODEL_NUMBER)} is "
                    "expected; change the servo, since another model reads other values in the same registers"
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
        self._put(
            (registers.POSITION_D_GAIN, 0),
            (registers.POSITION_I_GAIN, 0),
            (registers.POSITION_P_GAIN, p_gain),
        )
        self._gain = p_gain

    def hold_present(self) -> None:
        """Make every goal the present position, so that nothing moves when torque comes on.

        Raises:
            BusTimeoutError: a servo does not answer.
            DeviceError: a servo did not take it.
        """
        blocks = self._bus.sync_read(self.TICK_ADDRESS, self.TICK_LENGTH, SERVO_IDS)
        counts = self._goals(self.decode(blocks).position)
        data = [count.to_bytes(_GOAL.width, "little") for count in counts]
        goals = dict(zip(SERVO_IDS, data, strict=True))
        self._put_bytes(_GOAL.address, goals, "its present position as goal")

    def enable(self, p_gain: int) -> None:
        """Let the servos hold where they are, and stop by themselves when the bus falls silent.

        In this order: clear the bus watchdog, without which no goal can be written after it tripped; let the
        whole voltage reach the motor again; set the gains; make the goals the present position, since a servo
        keeps its old goal while it is moved by hand, and would jump back to it; arm the watchdog; switch
        torque on. From then on the bus must not be silent for `WATCHDOG_S`. After an error some servos may
        hold torque: call `limp`.

        Args:
            p_gain: position P register.

        Raises:
            SafetyError: the gain does not fit the register.
            BusTimeoutError: a servo does not answer.
            DeviceError: a servo did not take a value, or stays limp because it tripped.
        """
        self._gain = None  # a battery change since the last enable has reset the gains in the servos
        self._put((registers.BUS_WATCHDOG, 0))
        self._restore_pwm()
        self.set_gain(p_gain)
        self.hold_present()
        self._put((registers.BUS_WATCHDOG, WATCHDOG_S))
        self._put((registers.TORQUE_ENABLE, 1))

    def limp(self) -> None:
        """Switch torque off at every servo, the mouth's too, whatever fails on the way.

        One packet reaches all; it is sent again while one of the joints does not read back as limp. The bus
        watchdog is disarmed only where torque is known to be off: another servo is to stop by itself.

        Raises:
            BusError: the port takes no bytes; torque may be on.
            DeviceError: names the joints that may still hold torque.
        """
        off = registers.TORQUE_ENABLE.encode(0)
        stiff = list(SERVO_IDS)
        for _ in range(LIMP_TRIES):
            self._bus.sync_write_bytes(registers.TORQUE_ENABLE.address, dict.fromkeys(ALL_SERVO_IDS, off))
            stiff = self._unlike(registers.TORQUE_ENABLE.address, dict.fromkeys(stiff, off))
            if not stiff:
                break
        limp = [device for device in SERVO_IDS if device not in stiff]
        if limp:
            self._bus.sync_write(registers.BUS_WATCHDOG, dict.fromkeys(limp, 0))
        if stiff:
            raise DeviceError(f"torque may still be on at {name_of(*stiff)}; switch the battery off")

    def reboot(self, devices: Sequence[int] = SERVO_IDS) -> None:
        """Restart servos, which clears a latched shutdown; every joint is limp before and stays so.

        A restart loses what a servo holds in its RAM, so the gains that were set last are set again.

        Args:
            devices: ids of the servos to restart.

        Raises:
            BusTimeoutError: a servo does not come back.
            DeviceError: a servo cannot be made limp, or its fault is still there.
        """
        self.limp()
        gain, self._gain = self._gain, None
        for device in devices:
            self._bus.reboot(device)
        sleep(REBOOT_S)
        for device in devices:
            self._refuse_tripped(device)
        if gain is not None:
            self.set_gain(gain)

    def write_goals(self, targets: np.ndarray) -> None:
        """Send joint targets (14,) [rad] to all servos at once, kept within one servo turn.

        Raises:
            SafetyError: a target is not finite; nothing is sent.
        """
        goals = zip(SERVO_IDS, self._goals(targets), strict=True)
        self._bus.sync_write_rows(_GOAL.address, _GOAL.width, _GOAL_ROWS.pack(*chain.from_iterable(goals)))

    def decode(self, blocks: Mapping[int, Block]) -> ServoSample:
        """Return the sample that the tick's blocks hold.

        Args:
            blocks: 12 bytes from address 124 of each servo, by id; blocks of other ids are ignored.
        """
        rows = [_TICK.unpack(blocks[device].data) for device in SERVO_IDS]
        angles = [(row[2] - servo.POSITION_CENTRE) * servo.RADIANS_PER_COUNT for row in rows]
        return ServoSample(
            position=np.array([angle - offset for angle, offset in zip(angles, self._offsets, strict=True)]),
            velocity=np.array([row[1] * servo.RAD_PER_S_PER_COUNT for row in rows]),
            current=np.array([row[0] * servo.AMPERES_PER_COUNT for row in rows]),
            alerts={d: blocks[d].error for d in SERVO_IDS if blocks[d].error & ALERT_BIT},
        )

    def _goals(self, targets: np.ndarray) -> list[int]:
        """Return the goals in counts for joint targets (14,) [rad]."""
        if targets.shape == (NUM_JOINTS,):
            angles = [target + offset for target, offset in zip(targets.tolist(), self._offsets, strict=True)]
            if all(map(isfinite, angles)):
                counts = [round(angle / _GOAL.factor) + _GOAL.centre for angle in angles]
                return [min(max(count, _LOWEST), _HIGHEST) for count in counts]
        raise SafetyError(f"targets must be {NUM_JOINTS} finite angles in rad, not {targets}")

    def _has_mouth(self) -> bool:
        """Refuse missing and doubled ids; return whether the mouth's servo is there."""
        answers = {device: presence(self._bus, device) for device in ALL_SERVO_IDS}
        doubled = [device for device, found in answers.items() if found is Presence.MORE]
        if doubled:
            raise DeviceError(
                f"more than one servo answers, or the line is disturbed, at {name_of(*doubled)}; "
                "unplug servos one by one to find the second, and give it its own id"
            )
        missing = [device for device in SERVO_IDS if answers[device] is Presence.NONE]
        if missing:
            others = sorted({found.id for found in self._bus.scan()} - {*ALL_SERVO_IDS})
            raise DeviceError(
                f"no answer from {name_of(*missing)}; other ids on this bus: {others or 'none'}. "
                "Check power and cables; a new servo answers as id 1, often at 57600 baud only"
            )
        return answers[MOUTH_ID] is Presence.ONE

    def _check_settings(self, device: int) -> None:
        for setting in SETTINGS:
            register, expected = setting.register, setting.expected
            value = self._bus.read(device, register)
            if value != expected:
                unit = f" {register.unit}" if register.unit else ""
                raise DeviceError(
                    f"{name_of(device)}: {register.name} (address {register.address}) is {value:g}{unit}, "
                    f"but {expected:g}{unit} is expected; `duck doctor --fix` sets it"
                )
        self._refuse_tripped(device)

    def _restore_pwm(self) -> None:
        """Make the goal PWM, which bounds the motor's voltage, the limit it has after a restart."""
        limits = self._bus.sync_read(registers.PWM_LIMIT.address, registers.PWM_LIMIT.width, SERVO_IDS)
        data = {device: block.data for device, block in limits.items()}
        self._put_bytes(registers.GOAL_PWM.address, data, "its PWM limit as goal_pwm")

    def _put(self, *values: tuple[Register, float]) -> None:
        """Write values to neighbouring registers of all joints' servos, and make sure that they are there."""
        data = b"".join(register.encode(value) for register, value in values)
        names = ", ".join(f"{register.name} = {value:g}" for register, value in values)
        self._put_bytes(values[0][0].address, dict.fromkeys(SERVO_IDS, data), names)

    def _put_bytes(self, address: int, data: Mapping[int, bytes], what: str) -> None:
        """Write, read back, write what differs once more, and refuse if that does not help.

        Written and read in one packet for all, a change of gain fits in a tick; one acknowledged write per
        servo would take most of it.
        """
        self._bus.sync_write_bytes(address, data)
        for device in self._unlike(address, data):
            self._refuse_tripped(device)
            self._bus.write_bytes(device, address, data[device], what)
        failed = self._unlike(address, data)
        if failed:
            raise DeviceError(f"{name_of(*failed)} did not take {what}; check cables and control table")

    def _unlike(self, address: int, expected: Mapping[int, bytes]) -> list[int]:
        """Return the ids whose registers do not read back as these bytes."""
        length = len(next(iter(expected.values())))
        blocks = self._bus.sync_read_available(address, length, tuple(expected))
        return [
            device for device, data in expected.items() if device not in blocks or blocks[device].data != data
        ]

    def _refuse_tripped(self, device: int) -> None:
        """Refuse a servo that switched itself off; an input voltage error alone switches none of ours off."""
        bits = int(self._bus.read(device, registers.HARDWARE_ERROR)) & servo.SHUTDOWN_MASK
        if bits:
            causes = " + ".join(registers.hardware_errors(bits))
            raise DeviceError(
                f"{name_of(device)} has tripped on {causes}; remove the cause, let it cool, then reboot it"
            )
