"""What the servos report of themselves: faults, heat, current and voltage, and what the loop makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from firmware_bridge.drive.limits import Battery
from firmware_bridge.drive.modes import Mode
from hardware.errors import DeviceError


def set_health(drive: Any, read: int, **changes: Any) -> None:
    drive.at(read, lambda: setattr(drive.body, "health", drive.body.make_health(**changes)))


def hot_at(joint: int, celsius: float) -> np.ndarray:
    return np.where(np.arange(14) == joint, celsius, 40.0)


@pytest.fixture
def measured(drive: Any, make_health: Callable[..., Any]) -> Any:
    """A drive of five seconds on a body with servos that report their health."""
    drive.body.make_health = make_health
    drive.body.health = make_health()
    drive.options = drive.options.__class__(skill="stand", seconds=5.0)
    return drive


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rebooted": ("left_knee",)}, "left_knee has restarted by itself"),
        ({"faults": {"left_knee": ("overload",)}}, "left_knee has tripped on overload"),
        ({"watchdog_tripped": True}, "the servos' watchdog has stopped them"),
    ],
)
@pytest.mark.parametrize("read", [50, 120])
def test_a_servo_that_lost_its_torque_makes_all_limp(
    measured: Any, changes: dict[str, Any], reason: str, read: int
) -> None:
    set_health(measured, read, **changes)
    summary = measured.run()
    assert (summary.mode, summary.reason) == (Mode.FAULT, reason)
    assert measured.body.reads == read
    assert not measured.body.torque


def test_high_input_voltage_alone_stops_nobody(measured: Any) -> None:
    set_health(measured, 120, faults={"left_knee": ("input voltage",)})
    assert measured.run(seconds=1.0).mode is Mode.STOPPED


def test_a_tripped_servo_must_be_rebooted_before_the_duck_rises(measured: Any) -> None:
    measured.body.health = measured.body.make_health(faults={"left_knee": ("overheating",)})
    summary = measured.run()
    assert summary.mode is Mode.FAULT
    assert "left_knee has tripped on overheating" in summary.reason and "reboot it" in summary.reason
    assert "enable" not in measured.body.calls


def test_heat_is_told_once_and_then_makes_the_duck_sit(measured: Any) -> None:
    for read, celsius in ((110, 60.0), (160, 61.0), (210, 65.0)):
        set_health(measured, read, temperature=hot_at(3, celsius))
    summary = measured.run()
    assert measured.news == ["left_knee 60 deg C: hot; at 65 deg C the duck sits down"]
    assert measured.modes == [Mode.RISE, Mode.RUN, Mode.SIT, Mode.FAULT]
    assert summary.reason == "too hot: left_knee 65 deg C"
    assert measured.ticks[209].mode is Mode.SIT


def test_a_hot_duck_does_not_rise(measured: Any) -> None:
    measured.body.health = measured.body.make_health(temperature=hot_at(3, 66.0))
    assert "too hot: left_knee 66 deg C; let it cool" in measured.run().reason
    assert "enable" not in measured.body.calls


def test_a_current_that_no_gait_takes_for_a_second_makes_the_duck_sit(measured: Any) -> None:
    measured.at(121, lambda: measured.body.current.__setitem__(3, -1.2))
    summary = measured.run()
    assert summary.mode is Mode.FAULT
    assert summary.reason == "left_knee took more than 1 A for 1 s; is it blocked?"
    assert [tick.mode for tick in measured.ticks[167:170]] == [Mode.RUN, Mode.RUN, Mode.SIT]


def test_a_current_that_a_gait_takes_is_let_through(measured: Any) -> None:
    for read in range(110, 160, 10):  # the shipped walker: 2.5 A, at most 0.16 s above 1 A
        measured.at(read, lambda: measured.body.current.__setitem__(3, 2.5))
        measured.at(read + 8, lambda: measured.body.current.__setitem__(3, 0.2))
    assert measured.run(seconds=1.0).mode is Mode.STOPPED


@pytest.mark.parametrize(("pack", "end"), [(True, Mode.FAULT), (False, Mode.STOPPED)])
def test_an_empty_pack_makes_the_duck_sit_and_a_regulated_rail_never_does(
    measured: Any, pack: bool, end: Mode
) -> None:
    for i in range(60):  # once a second on a duck; here at every second tick
        set_health(measured, 110 + 2 * i, voltage=np.full(14, 6.0))
    summary = measured.run(battery=Battery(rail_is_pack=pack))
    assert summary.mode is end
    assert ("the battery is empty: 6.6 V" in summary.reason) is pack
    assert Mode.SIT in measured.modes


def test_an_empty_duck_does_not_rise(measured: Any) -> None:
    measured.body.health = measured.body.make_health(voltage=np.full(14, 6.4))
    summary = measured.run(battery=Battery(rail_is_pack=True))
    assert "the battery is empty: 6.4 V; charge it" in summary.reason
    assert "enable" not in measured.body.calls


def test_a_servos_alert_is_kept_in_the_summary(drive: Any) -> None:
    drive.at(130, lambda: setattr(drive.body, "alerts", ("left_knee",)))
    drive.at(131, lambda: setattr(drive.body, "alerts", ()))
    assert drive.run().tally.alerts == {"left_knee"}


def test_servos_that_cannot_be_enabled_are_made_limp(drive: Any) -> None:
    def enable(p_gain: int) -> None:
        drive.body.torque = True
        raise DeviceError("left_knee (id 23) did not take torque_enable = 1")

    drive.body.enable = enable
    summary = drive.run()
    assert summary.mode is Mode.FAULT and "left_knee" in summary.reason
    assert drive.body.writes == [] and not drive.body.torque
