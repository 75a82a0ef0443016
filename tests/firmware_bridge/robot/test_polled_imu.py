"""An IMU that is read on a thread of its own: age, health, mounting, and the end of the thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from math import inf, radians
from typing import Any

import numpy as np
import pytest

from firmware_bridge.emulator.bno055 import EmulatedBno055
from firmware_bridge.emulator.bno055_uart import EmulatedBno055Uart
from firmware_bridge.emulator.imu_chip import ImuFault
from firmware_bridge.robot.imu import (
    ImuFrozenError,
    ImuInvalidError,
    ImuNotStartedError,
    ImuSilentError,
    ImuStaleError,
    bmi088,
    bno055,
    chip,
    i2c,
    polled,
    uart,
)
from firmware_bridge.robot.imu.bno055 import Bno055
from firmware_bridge.robot.imu.polled import PolledImu
from firmware_bridge.robot.imu.sample import Mounting, Reading
from firmware_bridge.robot.imu.uart import open_uart
from hardware.errors import BusError, DeviceError, ImuError

KINDS = ("bno055-uart", "bno055-i2c", "bmi088-i2c")
PERIOD_S = 0.01


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    """Let time pass only by sleeping."""

    def sleep(seconds: float) -> None:
        clock.now += seconds

    for module in (chip, bmi088, polled, uart):
        monkeypatch.setattr(module, "monotonic", clock)
    for module in (chip, bno055, bmi088, i2c, polled, uart):
        monkeypatch.setattr(module, "sleep", sleep)


@pytest.fixture
def go_on(clock: Any) -> Callable[[Any, int], None]:
    """Lets an IMU be read so many times, a period apart."""

    def step(imu: PolledImu, times: int) -> None:
        for _ in range(times):
            clock.now += PERIOD_S
            imu.step()

    return step


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("kind", KINDS)
class TestEachKind:
    def test_an_upright_trunk_at_rest_feels_gravity_down_for_as_long_as_it_likes(
        self, make_rig: Any, go_on: Any, kind: str
    ) -> None:
        rig = make_rig(kind)
        rig.imu.check()
        for _ in range(20):  # ten seconds
            go_on(rig.imu, 50)
            sample = rig.imu.read(inf)
        assert sample.gravity == pytest.approx([0, 0, -1], abs=0.01)
        assert sample.angular_velocity == pytest.approx([0, 0, 0], abs=0.02)

    def test_one_mounting_turns_rates_and_gravity_and_raw_readings_are_left_alone(
        self, make_rig: Any, go_on: Any, kind: str
    ) -> None:
        turned_about_z = (0.5**0.5, 0.0, 0.0, 0.5**0.5)  # its x is the trunk's y
        bias = (0.05, 0.0, 0.0)
        rig = make_rig(kind, mounting=Mounting(turned_about_z, bias))
        half = radians(30) / 2
        # The sensor, in its own axes, leans nose down by 30 degrees and says that it turns about x, too
        # slowly to contradict that it does not.
        rig.sensor.set_motion(np.array([0.2, 0, 0]), np.array([np.cos(half), 0, np.sin(half), 0]))
        rig.imu.check()
        go_on(rig.imu, 1)
        rate, gravity = rig.imu.raw()
        assert rate == pytest.approx([0.2, 0, 0], abs=0.02)
        assert gravity == pytest.approx([0.5, 0, -(3**0.5) / 2], abs=0.01)
        sample = rig.imu.read(inf)
        assert sample.angular_velocity == pytest.approx([0, 0.15, 0], abs=0.02)
        assert sample.gravity == pytest.approx([0, 0.5, -(3**0.5) / 2], abs=0.01)

    @pytest.mark.parametrize(
        ("fault", "readings", "error"),
        [
            (ImuFault.DISCONNECTED, 6, ImuSilentError),
            (ImuFault.GARBAGE, 6, ImuInvalidError),
            (ImuFault.FROZEN, 30, ImuFrozenError),
            (ImuFault.STUCK, 45, ImuFrozenError),
        ],
    )
    def test_each_fault_is_told_by_its_name_and_is_over_when_the_sensor_is_well(
        self, make_rig: Any, go_on: Any, kind: str, fault: ImuFault, readings: int, error: type[ImuError]
    ) -> None:
        rig = make_rig(kind)
        rig.imu.check()
        rig.sensor.set_motion(np.array([0.6, 0, 0]), np.array([1.0, 0, 0, 0]))
        rig.sensor.fault = fault
        go_on(rig.imu, readings)
        with pytest.raises(error):
            rig.imu.read(inf)
        with pytest.raises(error):
            rig.imu.raw()
        rig.sensor.fault = None
        rig.sensor.set_motion(np.zeros(3), np.array([0.9998, 0.02, 0, 0]))
        go_on(rig.imu, 2)
        assert rig.imu.read(inf).gravity[2] < -0.99

    def test_a_sensor_that_restarts_by_itself_is_not_taken_for_upright(
        self, make_rig: Any, go_on: Any, kind: str, clock: Any
    ) -> None:
        rig = make_rig(kind)
        rig.imu.check()
        rig.sensor.restart()
        clock.now += 1.0
        go_on(rig.imu, 6)
        with pytest.raises(ImuNotStartedError):
            rig.imu.read(inf)

    def test_a_wrong_chip_is_refused(self, make_rig: Any, kind: str) -> None:
        rig = make_rig(kind)
        rig.sensor.fault = ImuFault.WRONG_CHIP
        with pytest.raises(DeviceError, match="has id 0x55"):
            rig.imu.check()

    def test_check_does_not_pass_a_sensor_that_is_absent_or_dies_meanwhile(
        self, make_rig: Any, kind: str, monkeypatch: pytest.MonkeyPatch, clock: Any
    ) -> None:
        rig = make_rig(kind)
        rig.sensor.fault = ImuFault.DISCONNECTED
        with pytest.raises(ImuSilentError):
            rig.imu.check()
        rig.sensor.fault = None
        start = rig.chip.start

        def dies() -> None:
            start()
            rig.sensor.fault = ImuFault.FROZEN

        monkeypatch.setattr(rig.chip, "start", dies)
        with pytest.raises(ImuError):
            rig.imu.check()

    def test_a_sample_may_be_50_ms_old_and_no_older(
        self, make_rig: Any, go_on: Any, clock: Any, kind: str
    ) -> None:
        rig = make_rig(kind)
        rig.imu.check()
        go_on(rig.imu, 1)
        clock.now += 0.0499
        rig.imu.read(inf)
        clock.now += 0.0002
        with pytest.raises(ImuStaleError, match="50 ms old, and 50 ms is the most"):
            rig.imu.read(inf)


@pytest.mark.usefixtures("no_waiting")
def test_an_imu_that_was_not_checked_gives_nothing(make_rig: Any) -> None:
    with pytest.raises(ImuStaleError, match="not read yet"):
        make_rig("bno055-i2c").imu.read(inf)


@pytest.mark.usefixtures("no_waiting")
def test_an_error_that_lasts_does_not_grow(make_rig: Any, go_on: Any) -> None:
    rig = make_rig("bno055-i2c")
    rig.imu.check()
    rig.sensor.fault = ImuFault.DISCONNECTED
    go_on(rig.imu, 7)
    depths = []
    for _ in range(3):
        with pytest.raises(ImuSilentError) as caught:
            rig.imu.read(inf)
        depths.append(len(caught.traceback))
    assert depths[0] == depths[2]


class Counting:
    """A chip that counts its readings, until one breaks it."""

    def __init__(self) -> None:
        self.readings = 0
        self.breaks = False
        self.closed = False

    def start(self) -> None:
        pass

    def read(self) -> Reading:
        if self.breaks:
            raise RuntimeError("nobody foresaw this")
        self.readings += 1
        return Reading((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (self.readings.to_bytes(4, "little"),))

    def advice(self) -> str | None:
        return None

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Counting, PolledImu]]:
    """A chip that is read by a real thread, on a machine that may be busy."""
    monkeypatch.setattr(polled, "MAX_AGE_S", 30.0)
    monkeypatch.setattr(polled, "LIVE_READINGS", 1)
    chip = Counting()
    imu = PolledImu(chip, Mounting())
    imu.check()
    yield chip, imu
    imu.close()


def wait_until(true: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def test_the_thread_reads_by_itself_and_ends_with_close(counting: tuple[Counting, PolledImu]) -> None:
    chip, imu = counting
    wait_until(lambda: chip.readings > 5)
    imu.read(inf)
    imu.close()
    assert chip.closed and "imu" not in {thread.name for thread in threading.enumerate()}
    count = chip.readings
    time.sleep(0.05)
    assert chip.readings == count


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_died_is_told_once_its_last_sample_is_too_old(
    counting: tuple[Counting, PolledImu], monkeypatch: pytest.MonkeyPatch
) -> None:
    chip, imu = counting
    chip.breaks = True
    wait_until(lambda: "imu" not in {thread.name for thread in threading.enumerate()})
    monkeypatch.setattr(polled, "MAX_AGE_S", 0.0)
    with pytest.raises(ImuStaleError, match="the thread that reads the IMU has ended"):
        imu.read(inf)


def test_a_driver_that_was_never_checked_can_be_closed() -> None:
    chip = Counting()
    PolledImu(chip, Mounting()).close()
    assert chip.closed


def test_a_bno055_behind_a_real_port_is_read_by_a_real_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uart, "ANSWER_S", 5.0)
    monkeypatch.setattr(polled, "MAX_AGE_S", 30.0)
    sensor = EmulatedBno055()
    with EmulatedBno055Uart(sensor) as far:
        imu = PolledImu(Bno055(open_uart(far.port)), Mounting((1.0, 0, 0, 0)))
        imu.check()
        far.overruns = 1
        sensor.set_motion(np.zeros(3), np.array([0.0, 1.0, 0.0, 0.0]))
        wait_until(lambda: imu.read(inf).gravity[2] > 0.99)
        monkeypatch.setattr(uart, "ANSWER_S", 0.005)
        monkeypatch.setattr(polled, "MAX_AGE_S", 0.05)
        sensor.fault = ImuFault.DISCONNECTED

        def silent() -> bool:
            try:
                imu.read(inf)
            except BusError as error:
                return isinstance(error, ImuSilentError)
            return False

        wait_until(silent)
        imu.close()
