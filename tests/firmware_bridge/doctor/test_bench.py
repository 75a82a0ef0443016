from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from firmware_bridge.doctor.bench import GOALS_WIRE_S, Measurement, Spread, Subject, measure, refuse_torque
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from hardware.errors import BusTimeoutError, DeviceError, PortError


class Rig:
    """A limp body, a policy and a clock whose every step takes the time it is told to [s]."""

    layout = "sensor"

    def __init__(self, wake: float = 0.0002, read: float = 0.003, act: float = 0.001) -> None:
        self.now = 100.0
        self.wake, self.read_s, self.act_s = wake, read, act
        self.failing: dict[int, Exception] = {}
        self.slow: dict[int, float] = {}
        self.reads: list[float] = []
        self.deadlines: list[float] = []
        self.written: list[np.ndarray] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.wake

    def read(self, deadline: float) -> Any:
        index = len(self.reads)
        self.reads.append(self.now)
        self.deadlines.append(deadline)
        self.now += self.slow.get(index, self.read_s)
        if index in self.failing:
            raise self.failing[index]
        return SimpleNamespace(position=np.full(14, float(index)))

    def write(self, targets: np.ndarray) -> None:
        self.written.append(targets)
        self.now += 0.0001

    def enable(self, p_gain: int) -> None:
        pytest.fail("a bench must not switch torque on")

    def skill(self) -> Any:
        return SimpleNamespace(name="walk")

    def act(self, observation: np.ndarray, skill: Any) -> np.ndarray:
        assert observation.dtype == np.float32
        self.now += self.act_s
        return np.zeros(14)

    def measure(self, seconds: float = 1.0, bus: bool = True, **more: Any) -> Measurement:
        rig: Any = self
        subject = Subject(rig, rig if bus else None, more.pop("record", None))
        return measure(subject, seconds, now=lambda: self.now, sleep=self.sleep, **more)


def test_a_spread_is_the_median_the_99th_percentile_and_the_largest() -> None:
    assert Spread.of([n / 1000 for n in range(1000, 0, -1)]) == (0.5, 0.99, 1.0)
    assert Spread.of([7.0]) == (7.0, 7.0, 7.0)
    assert Spread.of([1.0, 2.0, 3.0]) == (2.0, 3.0, 3.0)


def test_the_goals_of_a_tick_are_on_the_wire_for_their_84_bytes() -> None:
    assert pytest.approx(0.84e-3) == GOALS_WIRE_S


def test_every_stage_is_timed_and_the_tick_is_their_sum() -> None:
    result = Rig().measure()
    assert result.ticks == 50 and result.over == 0 and result.failed_reads == 0
    medians = {name: spread.p50 for name, spread in result.stages.items()}
    assert medians == pytest.approx(
        {"late": 0.2e-3, "read": 3e-3, "policy": 1e-3, "write": 0.1e-3, "work": 4.94e-3}
    )
    assert result.fits and result.verdict.startswith("Fits: 99 of 100 ticks need 5.1 ms of 20 ms or less")


def test_ticks_start_at_absolute_deadlines_and_reads_may_take_until_the_next() -> None:
    rig = Rig()
    rig.measure()
    assert rig.reads == pytest.approx([100 + 0.02 * n + 0.0002 for n in range(1, 51)])
    assert rig.deadlines == pytest.approx([100 + 0.02 * n for n in range(2, 52)])


def test_a_slow_tick_costs_its_deadlines_and_leaves_the_next_tick_punctual() -> None:
    rig = Rig()
    rig.slow = {4: 0.050}
    result = rig.measure()
    assert result.ticks == 48 and result.over == 1
    assert result.stages["late"].most == pytest.approx(0.2e-3)
    assert not result.fits and result.verdict == "Too slow: 1 of 48 ticks took more than their 20 ms."


def test_one_late_tick_in_a_thousand_is_let_pass() -> None:
    rig = Rig()
    rig.slow = {4: 0.019}
    result = rig.measure(seconds=20.02)
    assert (result.ticks, result.over, result.fits) == (1000, 1, True)


@pytest.mark.parametrize(("wake", "over"), [(0.00005, 0), (0.0001, 50)])
def test_waking_up_late_counts_against_the_tick(wake: float, over: int) -> None:
    # 18.0 + 1.0 + 0.1 + 0.84 ms of work leave 0.06 ms of a tick
    assert Rig(wake=wake, read=0.018).measure().over == over


def test_failed_reads_are_counted_and_followed_by_no_write() -> None:
    rig = Rig()
    rig.failing = {3: BusTimeoutError("silent"), 7: DeviceError("refused")}
    result = rig.measure()
    assert result.failed_reads == 2 and len(rig.written) == 48
    assert not result.fits and "2 of 50 reads failed" in result.verdict


def test_a_port_that_fails_ends_the_bench() -> None:
    rig = Rig()
    rig.failing = {3: PortError("gone")}
    with pytest.raises(PortError):
        rig.measure()


def test_the_angles_just_read_are_written() -> None:
    rig = Rig()
    rig.measure(seconds=0.04)
    assert [goals.tolist() for goals in rig.written] == [[0.0] * 14, [1.0] * 14]


def test_without_a_bus_only_the_machine_is_measured() -> None:
    rig = Rig()
    result = rig.measure(bus=False)
    assert set(result.stages) == {"late", "policy", "work"} and rig.reads == []
    assert result.stages["work"].p50 == pytest.approx(1e-3)


def test_handing_each_tick_over_to_a_recording_is_timed_apart_from_the_tick() -> None:
    rig = Rig()
    told: list[Any] = []

    def record(tick: Any) -> None:
        told.append(tick)
        rig.now += 0.0004

    result = rig.measure(record=record)
    assert result.stages["record"].p50 == pytest.approx(0.4e-3)
    assert result.stages["work"].p50 == pytest.approx(4.94e-3)
    assert [tick.sample.position[0] for tick in told] == list(range(50))


def test_a_stop_ends_the_bench_after_the_tick_it_came_in() -> None:
    assert Rig().measure(stopped=lambda: "SIGINT received").ticks == 1


def test_a_duck_whose_torque_is_on_is_refused(wire_bus: Bus, wire_port: Any) -> None:
    refuse_torque(wire_bus)
    wire_port.servo(23).poke(registers.TORQUE_ENABLE, 1)
    with pytest.raises(DeviceError, match=r"torque is on at left_knee \(id 23\)"):
        refuse_torque(wire_bus)
