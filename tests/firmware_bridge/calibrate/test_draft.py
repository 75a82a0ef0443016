from __future__ import annotations

import pytest

from firmware_bridge.calibrate.draft import Draft
from firmware_bridge.calibrate.mounting import MountingFit
from hardware.calibration import IMU_BOARD_MOUNTING, Calibration, Measured

OLD = Calibration((0.1,) * 14, (1.0, 0.0, 0.0, 0.0), (0.01, 0.0, 0.0))


def mounted(quaternion: tuple[float, float, float, float], residual: float = 0.0) -> Draft:
    draft = Draft(OLD)
    draft.mount(MountingFit(quaternion, (residual, residual, residual), (1.5, 1.5)))
    return draft


def test_what_was_not_measured_stays() -> None:
    assert Draft(OLD).empty and Draft(OLD).calibration() == OLD
    draft = Draft(OLD, {"left_ankle": -0.2})
    assert not draft.empty
    assert draft.calibration() == Calibration((*[0.1] * 4, -0.2, *[0.1] * 9), OLD.imu_mounting, OLD.gyro_bias)


def test_mounting_and_bias_are_taken_over_alone_or_together() -> None:
    only_mounting = mounted(IMU_BOARD_MOUNTING).calibration()
    assert only_mounting == Calibration(OLD.joint_offsets, IMU_BOARD_MOUNTING, OLD.gyro_bias)
    only_bias = Draft(OLD, bias=(0.0, 0.0, 0.0)).calibration()
    assert only_bias == Calibration(OLD.joint_offsets, OLD.imu_mounting, (0.0, 0.0, 0.0))


def test_what_an_earlier_run_measured_counts_as_measured() -> None:
    draft = Draft(OLD)
    draft.take(Measured({"left_ankle": 0.1}, gyro_bias=(0.0, 0.02, 0.0)))  # also where it is as before
    assert draft == Draft(OLD, {"left_ankle": 0.1}, bias=(0.0, 0.02, 0.0))
    draft.take(Measured(imu_mounting=IMU_BOARD_MOUNTING))
    assert draft == Draft(OLD, {}, IMU_BOARD_MOUNTING)
    assert draft.measured == Measured({}, IMU_BOARD_MOUNTING)


def test_the_table_shows_old_beside_new() -> None:
    rows = Draft(OLD, {"left_ankle": -0.2}, bias=(0.0, 0.02, 0.0)).rows()
    assert ("left_ankle", "+0.1000", "-0.2000", "rad") in rows
    assert ("left_knee", "+0.1000", "=", "rad") in rows
    assert rows[-1] == ("gyro bias (x, y, z)", "+0.0100 +0.0000 +0.0000", "+0.0000 +0.0200 +0.0000", "rad/s")


@pytest.mark.parametrize(
    ("draft", "doubt"),
    [
        (Draft(OLD, {"left_knee": 0.26}), "left_knee is off by +0.26 rad; a tooth of its horn is 0.27 rad"),
        (mounted(IMU_BOARD_MOUNTING), "the IMU would sit in another way than before"),
        (mounted((1.0, 0.0, 0.0, 0.0), 0.05), "the tips were not square to each other"),
        (Draft(OLD, bias=(0.0, -0.06, 0.0)), "the bias is larger than data sheets allow"),
    ],
)
def test_numbers_to_look_at_again_are_named(draft: Draft, doubt: str) -> None:
    assert any(doubt in remark for remark in draft.remarks())


def test_usual_numbers_raise_no_doubt() -> None:
    draft = mounted((1.0, 0.0, 0.0, 0.0), 0.005)
    draft.offsets, draft.bias = {"left_knee": 0.05}, (0.01, 0.0, 0.0)
    assert not any("look again" in remark for remark in draft.remarks())
    assert "tipped 86 degrees forward and 86 to the left" in draft.remarks()
