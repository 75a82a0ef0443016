"""A duck's body as the loop sees it: four methods, the same for a real, an emulated and a test body."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import NamedTuple, Protocol

import numpy as np

from firmware_bridge.robot.devices import NAMES
from firmware_bridge.robot.health import Health, HealthWatch
from firmware_bridge.robot.imu import BOARD_ID, BusImu, Imu
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire.bus import FAST_FAILURES, Bus
from firmware_bridge.wire.bus_stats import BusStats
from firmware_bridge.wire.port import SerialPort
from firmware_bridge.wire.protocol import Block
from hardware import servo
from hardware.calibration import Calibration
from hardware.errors import BusTimeoutError
from hardware.joints import JOINT_NAMES, SERVO_IDS

DEVICES = (BOARD_ID, *SERVO_IDS)
"""Ids that are read in every tick, the board only where it is the duck's IMU."""
BOOT_S = 1.0
"""Time from the first answer after power came until every device is spoken to [s]; a servo starts in less."""
_POLL_S = 0.2
_ID_OF = dict(zip(JOINT_NAMES, SERVO_IDS, strict=True))


class BodySample(NamedTuple):
    """What a body measured in one tick.

    Attributes:
        time_s: monotonic time of the reading [s].
        position: joint angles, (14,) [rad].
        velocity: joint speeds, (14,) [rad/s].
        current: servo currents, (14,) [A].
        angular_velocity: of the trunk, in the trunk frame, (3,) [rad/s].
        gravity: unit gravity in the trunk frame, (3,); upright is (0, 0, -1).
        alerts: names of the joints whose servo reports a hardware fault.
        health: newest slow measurements, None when there are none yet.
    """

    time_s: float
    position: np.ndarray
    velocity: np.ndarray
    current: np.ndarray
    angular_velocity: np.ndarray
    gravity: np.ndarray
    alerts: tuple[str, ...]
    health: Health | None = None


class Body(Protocol):
    """A duck that can be driven."""

    def enable(self, p_gain: int) -> None:
        """Stiffen every joint where it is: set the P register, goal := present, then torque on.

        From then on the body stops by itself when it is not read or written for 0.2 s.

        Raises:
            BusError: a servo did not take it; some may have torque.
        """
        ...

    def read(self, deadline: float) -> BodySample:
        """Measure every joint and the trunk.

        Args:
            deadline: time by which it returns or raises [s, time.monotonic]. What is not needed in every tick
                is done only if there is room for it before.

        Raises:
            BusError: a part did not answer in time, or its answer cannot be used.
        """
        ...

    def write(self, targets: np.ndarray) -> None:
        """Send joint targets, (14,) [rad].

        Raises:
            BusError: the port does not take them.
        """
        ...

    def limp(self) -> None:
        """Switch every torque off, trying each servo even when another fails.

        Raises:
            BusError: names the servos that may still have torque.
        """
        ...


class RealBody:
    """Servos and IMU: one read and one write of the bus a tick.

    Making one runs the whole handshake, which writes nothing to the bus.

    Args:
        bus: the bus.
        calibration: what this duck's parts deviate by.
        imu: an IMU with a link of its own; the board on the bus when omitted.

    Raises:
        BusError: a device is missing, wrong or not ready.
    """

    def __init__(self, bus: Bus, calibration: Calibration, imu: Imu | None = None) -> None:
        self._bus = bus
        self._servos = Servos(bus, np.array(calibration.joint_offsets))
        self._imu = imu or BusImu(bus, calibration.imu_mounting, calibration.gyro_bias)
        # The board keeps its sample at the address of the servos' state, so one read brings both.
        self._board = self._imu if isinstance(self._imu, BusImu) else None
        self._devices = DEVICES if self._board else SERVO_IDS
        self._health = HealthWatch(bus)
        self._servos.check()
        self._imu.check()
        for _ in range(FAST_FAILURES):  # a device without fast reads is found out now, not in the first ticks
            self._read_blocks(None)
        self._health.read_all()

    @property
    def stats(self) -> BusStats:
        """What went wrong on the bus so far."""
        return self._bus.stats

    def enable(self, p_gain: int) -> None:
        """See `Body.enable`."""
        self._servos.enable(p_gain)
        self._health.switched(True)

    def read(self, deadline: float) -> BodySample:
        """See `Body.read`."""
        blocks = self._read_blocks(deadline)
        now = monotonic()
        joints = self._servos.decode(blocks)
        self._health.update(joints.alerts, now, deadline)
        trunk = self._board.decode(blocks[BOARD_ID].data) if self._board else self._imu.read(deadline)
        return BodySample(
            time_s=now,
            position=joints.position,
            velocity=joints.velocity,
            current=joints.current,
            angular_velocity=trunk.angular_velocity,
            gravity=trunk.gravity,
            alerts=tuple(NAMES[device] for device in joints.alerts),
            health=self._health.newest,
        )

    def write(self, targets: np.ndarray) -> None:
        """See `Body.write`."""
        self._servos.write_goals(targets)

    def limp(self) -> None:
        """See `Body.limp`."""
        self._servos.limp()
        self._health.switched(False)

    def reboot(self, joints: Sequence[str] = JOINT_NAMES) -> None:
        """Restart joints' servos, which clears a latched shutdown; every joint is limp before and stays so.

        Raises:
            BusError: a servo cannot be made limp, does not come back, or its fault is still there.
        """
        self._health.switched(False)
        self._servos.reboot([_ID_OF[joint] for joint in joints])

    def _read_blocks(self, deadline: float | None) -> dict[int, Block]:
        return self._bus.fast_sync_read(Servos.TICK_ADDRESS, Servos.TICK_LENGTH, self._devices, deadline)


@contextmanager
def open_body(
    port_path: str,
    calibration: Calibration,
    *,
    baud: int = servo.BAUD,
    wait_s: float = 0.0,
    report: Callable[[str], None] = lambda line: None,
    stop: Callable[[], str | None] = lambda: None,
) -> Iterator[RealBody]:
    """Open a duck's serial port, prove that the whole duck is there, and close the port at the end.

    Args:
        port_path: device, for example `/dev/ttyAMA0`.
        calibration: what this duck's parts deviate by.
        baud: speed of the bus [1/s].
        wait_s: longest time to wait for the servos' power, while no device answers at all [s].
        report: told of the begin and the end of that wait, a line each.
        stop: returns why to wait no longer, or None.

    Raises:
        BusTimeoutError: no device answered in that time, or the wait was stopped.
        BusError: the port cannot be opened, or the duck is not ready; nothing was written.
    """
    with powered_bus(port_path, baud=baud, wait_s=wait_s, report=report, stop=stop) as bus:
        yield RealBody(bus, calibration)


@contextmanager
def powered_bus(
    port_path: str,
    *,
    baud: int = servo.BAUD,
    wait_s: float = 0.0,
    report: Callable[[str], None] = lambda line: None,
    stop: Callable[[], str | None] = lambda: None,
) -> Iterator[Bus]:
    """Open a duck's serial port once its servos have power, and close it at the end; see `open_body`.

    Raises:
        BusTimeoutError: no device answered in that time, or the wait was stopped.
        BusError: the port cannot be opened.
    """
    with SerialPort(port_path, baud) as port:
        _await_power(Bus(port, baud), port_path, wait_s, report, stop)
        yield Bus(port, baud)


def _await_power(
    bus: Bus,
    port_path: str,
    wait_s: float,
    report: Callable[[str], None],
    stop: Callable[[], str | None],
) -> None:
    """Wait until any device answers; a bus where only some are missing is left to the handshake."""
    give_up = monotonic() + wait_s
    waited = False
    while not bus.models(DEVICES):
        asked = stop()
        if asked is not None:
            raise BusTimeoutError(f"{asked} while no device on {port_path} answered")
        if monotonic() >= give_up:
            raise BusTimeoutError(
                f"no device on {port_path} answers; switch the servos' power on, check the cable, and that "
                "this is the duck's port"
            )
        if not waited:
            report(f"no device on {port_path} answers; waiting for the servos' power")
            waited = True
        sleep(_POLL_S)
    if waited:
        report(f"devices on {port_path} answer now")
        sleep(BOOT_S)
