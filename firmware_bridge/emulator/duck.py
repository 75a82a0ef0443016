"""A duck on a desk without a duck: servos and IMU board behind a pseudo-terminal, in real bytes.

A thread answers on the controlling end; the other end is a port like any serial port. Whoever simulates the
body sets the servos' state and the IMU's motion; without a simulator the servos follow their goals.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic
from types import TracebackType

import numpy as np

from firmware_bridge.emulator.clock import Traffic, WireClock
from firmware_bridge.emulator.device import Device
from firmware_bridge.emulator.devices import EmulatedImuBoard, EmulatedServo
from firmware_bridge.emulator.faults import FaultKind, Schedule
from firmware_bridge.emulator.injector import Injector
from firmware_bridge.emulator.line import Arrival, Line
from firmware_bridge.emulator.wire import Reply, ReplyFilter, Wire, encode
from firmware_bridge.wire import registers
from firmware_bridge.wire.protocol import Packet
from firmware_bridge.wire.registers import Register
from hardware import servo
from hardware.joints import JOINT_NAMES, MOUTH_ID, NUM_JOINTS, SERVO_IDS

MAX_SPEED = 10.8
"""Speed limit of a following servo [rad/s]: the XL330-M288's 103 rev/min without load at 5 V."""
FOLLOW_TIME_S = 0.05
"""Time constant with which a following servo nears its goal [s]."""
_FOLLOW_STEP_S = 1e-3


class EmulatedDuck:
    """Fourteen joints, a mouth and an IMU board on a bus of their own; thread-safe.

    Use as a context manager: the bus answers inside the `with` block. A device hears and answers only what is
    sent at the speed of its own baud-rate register.

    Args:
        follow: let enabled servos move to their goals by themselves, and limp ones stay.
        imu_board: the IMU board; one in the usual mounting when omitted.
        clock: time base of the servos, the wire, and of an IMU board and faults that come with the duck [s].
        paced: hand each reply over only after the time that instruction and reply take on a real wire.
        threaded: answer in a thread of its own; else, and always where a late reply is to come by another
            clock than time.monotonic, whoever uses the port calls `line.step`.
        joint_offsets: angle of each servo where its joint is at zero, (14,) [rad]; none when omitted. Angles
            that this class takes and gives are those of the joints.

    Attributes:
        on_packet: told each packet before it is dealt with, by the thread that answers; a simulator brings
            the servos' state up to date there.
        imu_board: the IMU board.
        line: the bus's far end.
        port: path of the port to connect to.
    """

    def __init__(
        self,
        follow: bool = True,
        imu_board: EmulatedImuBoard | None = None,
        clock: Callable[[], float] = monotonic,
        paced: bool = False,
        threaded: bool = True,
        *,
        joint_offsets: Sequence[float] = (0.0,) * NUM_JOINTS,
    ) -> None:
        self._joint_offsets = np.asarray(joint_offsets, dtype=np.float64)
        self.imu_board = imu_board or EmulatedImuBoard(clock=clock)
        self._servos = {i: EmulatedServo(i, clock=clock) for i in (*SERVO_IDS, MOUTH_ID)}
        self._joints = [self._servos[i] for i in SERVO_IDS]
        self._wire = Wire([*self._servos.values(), self.imu_board])
        self._injector = Injector(Schedule(), self._wire, clock)
        self._lock = threading.RLock()
        self._clock, self._follow, self._paced = clock, follow, paced
        self._followed_until = clock()
        self._wire_clock = WireClock()
        self._free_at = clock()
        self.on_packet: Callable[[Packet], None] = lambda packet: None
        self.line = Line(self._answer, clock, threaded)
        self.port = self.line.port

    def __enter__(self) -> EmulatedDuck:
        self.line.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.line.__exit__(kind, error, trace)

    @property
    def filter(self) -> ReplyFilter | None:
        """What happens to each reply on its way to the host: returns other bytes, or None to drop it."""
        return self._wire.filter

    @filter.setter
    def filter(self, value: ReplyFilter | None) -> None:
        with self._lock:
            self._wire.filter = value

    @property
    def wire_clock(self) -> WireClock:
        """What the bus carried so far; the value returned stays as it is."""
        with self._lock:
            return self._wire_clock

    @property
    def struck(self) -> tuple[Counter[FaultKind], int]:
        """What the injected faults did so far: `Injector.struck` and `Injector.spoilt`."""
        with self._lock:
            return self._injector.struck.copy(), self._injector.spoilt

    @property
    def torque(self) -> np.ndarray:
        """Whether each joint's motor is driven, (14,) bool; not after its bus watchdog stopped it."""
        with self._lock:
            self._advance()
            return np.array([device.torque for device in self._joints])

    @property
    def goals(self) -> np.ndarray:
        """Goal of each joint, (14,) [rad]."""
        return self._angles(registers.GOAL_POSITION)

    @property
    def positions(self) -> np.ndarray:
        """Present position of each joint, (14,) [rad]."""
        with self._lock:
            self._advance()
            return self._angles(registers.PRESENT_POSITION)

    @property
    def p_gains(self) -> np.ndarray:
        """Position P register of each joint, (14,)."""
        return self._counts(registers.POSITION_P_GAIN)

    def set_state(
        self,
        position: np.ndarray,
        velocity: np.ndarray | None = None,
        current: np.ndarray | None = None,
        voltage: np.ndarray | float | None = None,
        temperature: np.ndarray | float | None = None,
    ) -> None:
        """Set what the servos measure; what is not given stays.

        Args:
            position: (14,) [rad], to which each servo adds its joint's offset and its homing offset.
            velocity: (14,) [rad/s].
            current: (14,) [A].
            voltage: (14,) or one for all [V].
            temperature: (14,) or one for all [deg C].
        """
        given = (
            (registers.PRESENT_VELOCITY, velocity),
            (registers.PRESENT_CURRENT, current),
            (registers.PRESENT_INPUT_VOLTAGE, voltage),
            (registers.PRESENT_TEMPERATURE, temperature),
        )
        with self._lock:
            self._advance()
            self._measure(registers.PRESENT_POSITION, position + self._joint_offsets, self._offsets())
            for register, values in given:
                if values is not None:
                    self._measure(register, values)

    def turn(self, joint: str, angle: float) -> None:
        """Turn one limp joint to an angle [rad], as a hand does; one that is driven goes back."""
        with self._lock:
            self._advance()
            index = JOINT_NAMES.index(joint)
            device = self._joints[index]
            count = round((angle + self._joint_offsets[index]) / registers.PRESENT_POSITION.factor)
            device.poke(registers.PRESENT_POSITION, count + registers.PRESENT_POSITION.centre + device.offset)

    def set_imu(self, angular_velocity: np.ndarray, quaternion: np.ndarray) -> None:
        """Set the trunk's motion.

        Args:
            angular_velocity: (3,) in the trunk frame [rad/s].
            quaternion: trunk to world (w, x, y, z).
        """
        with self._lock:
            self.imu_board.set_motion(angular_velocity, quaternion)

    def servo(self, device_id: int) -> EmulatedServo:
        """Return a servo, to look at its registers or to change them past all rules."""
        return self._servos[device_id]

    def plug(self, device: Device) -> None:
        """Connect one more device, which may double an id."""
        with self._lock:
            self._wire.devices.append(device)

    def unplug(self, device_id: int) -> None:
        """Disconnect every device with this id."""
        with self._lock:
            self._wire.devices = [device for device in self._wire.devices if device.id != device_id]

    def inject(self, schedule: Schedule) -> None:
        """Let these faults happen, counted from now on, in place of those injected before.

        Raises:
            ConfigError: a fault is to strike a device that is not there.
        """
        with self._lock:
            injector = Injector(schedule, self._wire, self._clock)
            self._injector.end()
            self._injector = injector
            injector.advance()

    def _answer(self, packet: Packet, baud: int | None) -> list[Arrival]:
        self.on_packet(packet)  # outside of the lock, which a simulator takes in a lock of its own
        with self._lock:
            self._advance()
            if baud is None:
                return []
            sent = encode(packet)
            replies = self._injector.damage(packet, self._wire.exchange(packet, baud))
            heard_back = Reply(sent) if self._injector.echoes() else Reply(b"")
            back = sum(len(reply.data) for reply in replies)
            delay = sum(reply.delay_s for reply in replies)
            cost = Traffic.exchange(len(sent), back, delay, baud)
            self._wire_clock = self._wire_clock.plus(packet.instruction, cost)
            wait = self._wait(cost.busy_s)
        return [Arrival(wait + reply.late_s, reply.data) for reply in (heard_back, *replies) if reply.data]

    def _wait(self, busy_s: float) -> float:
        """Return how long the host must wait for an exchange that keeps the wire busy so long [s]."""
        if not self._paced:
            return 0.0
        now = self._clock()
        self._free_at = max(self._free_at, now) + busy_s
        return self._free_at - now

    def _advance(self) -> None:
        """Let faults happen that are due, and move the following servos to where they are now."""
        self._injector.advance()
        elapsed = self._clock() - self._followed_until
        if elapsed < _FOLLOW_STEP_S:
            return
        self._followed_until += elapsed
        if not self._follow:
            return
        share = 1.0 - float(np.exp(-elapsed / FOLLOW_TIME_S))
        reach = MAX_SPEED * elapsed / servo.RADIANS_PER_COUNT
        for device in self._servos.values():
            present = device.peek(registers.PRESENT_POSITION)
            distance = device.peek(registers.GOAL_POSITION) - present if device.torque else 0
            # At least one count, else rounding would stop a servo short of its goal.
            step = min(max(round(abs(distance) * share), 1), int(reach) + 1, abs(distance))
            step = step if distance > 0 else -step
            device.poke(registers.PRESENT_POSITION, present + step)
            speed = step * servo.RADIANS_PER_COUNT / elapsed / servo.RAD_PER_S_PER_COUNT
            device.poke(registers.PRESENT_VELOCITY, round(speed))

    def _measure(self, register: Register, values: np.ndarray | float, offsets: np.ndarray | int = 0) -> None:
        spread = np.broadcast_to(np.asarray(values, dtype=np.float64), (NUM_JOINTS,))
        counts = np.rint(spread / register.factor).astype(int) + register.centre + offsets
        for device, count in zip(self._joints, counts.tolist(), strict=True):
            device.poke(register, count)

    def _offsets(self) -> np.ndarray:
        return np.array([device.offset for device in self._joints])

    def _counts(self, register: Register) -> np.ndarray:
        with self._lock:
            return np.array([device.peek(register) for device in self._joints])

    def _angles(self, register: Register) -> np.ndarray:
        with self._lock:
            counts = self._counts(register) - self._offsets() - register.centre
            return counts * register.factor - self._joint_offsets
