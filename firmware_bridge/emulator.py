"""A duck on a desk without a duck: servos and IMU board behind a pseudo-terminal, in real bytes.

A thread answers on the controlling end; the other end is a port like any serial port. Whoever simulates the
body sets the servos' state and the IMU's motion; without a simulator the servos follow their goals.
"""

from __future__ import annotations

import os
import select
import threading
import tty
from collections.abc import Callable
from time import monotonic
from types import TracebackType

import numpy as np

from firmware_bridge import protocol, registers
from firmware_bridge.emulated_devices import Device, EmulatedImuBoard, EmulatedServo
from firmware_bridge.emulated_wire import ReplyFilter, Wire
from firmware_bridge.registers import Register
from hardware import servo
from hardware.joints import MOUTH_ID, NUM_JOINTS, SERVO_IDS

MAX_SPEED = 10.8
"""Speed limit of a following servo [rad/s]: the XL330-M288's 103 rev/min without load at 5 V."""
FOLLOW_TIME_S = 0.05
"""Time constant with which a following servo nears its goal [s]."""
_FOLLOW_STEP_S = 1e-3
_CHUNK = 4096


class EmulatedDuck:
    """Fourteen joints, a mouth and an IMU board on a bus of their own; thread-safe.

    Use as a context manager: the bus answers inside the `with` block.

    Args:
        follow: let enabled servos move to their goals by themselves, and limp ones stay.
        imu_board: the IMU board; one in the usual mounting when omitted.
        clock: time base of the following servos [s].

    Attributes:
        port: path of the port to connect to.
    """

    def __init__(
        self,
        follow: bool = True,
        imu_board: EmulatedImuBoard | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.imu_board = imu_board or EmulatedImuBoard()
        self._servos = {device_id: EmulatedServo(device_id) for device_id in (*SERVO_IDS, MOUTH_ID)}
        self._joints = [self._servos[device_id] for device_id in SERVO_IDS]
        self._wire = Wire([*self._servos.values(), self.imu_board])
        self._lock = threading.RLock()
        self._clock, self._follow = clock, follow
        self._followed_until = clock()
        # Keeping the far end open keeps the terminal alive, and its settings, between two clients.
        self._near, self._far = os.openpty()
        tty.setraw(self._far)
        os.set_blocking(self._near, False)
        self.port = os.ttyname(self._far)
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._serve, name="emulated-duck", daemon=True)

    def __enter__(self) -> EmulatedDuck:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.write(self._wake_write, b"\0")
        self._thread.join()
        for descriptor in (self._near, self._far, self._wake_read, self._wake_write):
            os.close(descriptor)

    @property
    def filter(self) -> ReplyFilter | None:
        """What happens to each reply on its way to the host: returns other bytes, or None to drop it."""
        return self._wire.filter

    @filter.setter
    def filter(self, value: ReplyFilter | None) -> None:
        with self._lock:
            self._wire.filter = value

    @property
    def torque(self) -> np.ndarray:
        """Whether each joint's torque is on, (14,) bool."""
        return self._counts(registers.TORQUE_ENABLE).astype(bool)

    @property
    def goals(self) -> np.ndarray:
        """Goal of each joint, (14,) [rad]."""
        return self._values(registers.GOAL_POSITION)

    @property
    def positions(self) -> np.ndarray:
        """Present position of each joint, (14,) [rad]."""
        with self._lock:
            self._advance()
            return self._values(registers.PRESENT_POSITION)

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
            position: (14,) [rad].
            velocity: (14,) [rad/s].
            current: (14,) [A].
            voltage: (14,) or one for all [V].
            temperature: (14,) or one for all [deg C].
        """
        given = (
            (registers.PRESENT_POSITION, position),
            (registers.PRESENT_VELOCITY, velocity),
            (registers.PRESENT_CURRENT, current),
            (registers.PRESENT_INPUT_VOLTAGE, voltage),
            (registers.PRESENT_TEMPERATURE, temperature),
        )
        with self._lock:
            self._advance()
            for register, values in given:
                if values is not None:
                    self._measure(register, values)

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

    def _serve(self) -> None:
        parser = protocol.PacketParser(protocol.Discarded())
        while True:
            ready = select.select([self._near, self._wake_read], [], [])[0]
            if self._wake_read in ready:
                return
            for packet in parser.feed(os.read(self._near, _CHUNK)):
                with self._lock:
                    self._advance()
                    reply = self._wire.answer(packet)
                if reply:
                    self._transmit(reply)

    def _transmit(self, reply: bytes) -> None:
        try:
            os.write(self._near, reply)
        except BlockingIOError:
            return  # a host that reads nothing for thousands of bytes loses them, as on a UART

    def _advance(self) -> None:
        """Move the following servos to where they are now."""
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

    def _measure(self, register: Register, values: np.ndarray | float) -> None:
        spread = np.broadcast_to(np.asarray(values, dtype=np.float64), (NUM_JOINTS,))
        counts = np.rint(spread / register.factor).astype(int) + register.centre
        for device, count in zip(self._joints, counts.tolist(), strict=True):
            device.poke(register, count)

    def _counts(self, register: Register) -> np.ndarray:
        with self._lock:
            return np.array([device.peek(register) for device in self._joints])

    def _values(self, register: Register) -> np.ndarray:
        return (self._counts(register) - register.centre) * register.factor
