"""What was measured survives: a moment without answers, an end before the end, a disk that is full."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.emulator.duck import EmulatedDuck
from hardware.calibration import load_calibration

PATIENT = """
from firmware_bridge.calibrate import dialogue
dialogue.LOST_LOOKS = 10_000
"""
"""For a busy machine, on which the moment may last."""


def measure(calibrate: Any, title: str) -> None:
    calibrate.see(rf"{title} \(id")
    calibrate.duck.turn(title.rsplit(maxsplit=1)[-1], 0.0)
    calibrate.press("\r")
    calibrate.see("Enter keeps it")
    calibrate.press("\r")


def test_a_calibration_that_ended_early_goes_on_where_it_was(
    person: Callable[..., Any], place: Path, truth: Any
) -> None:
    first = person("--joints", "left_knee", "left_ankle")
    measure(first, "left_knee")
    first.see("joint 2 of 2")
    unfinished = place / "calibration.unfinished.toml"
    assert list(place.iterdir()) == [unfinished]  # from now on even a power cut costs nothing
    first.press("\x03")
    assert first.finish() == 130
    told = " ".join(first.shown.split())
    assert f"what you kept is in {unfinished}; `duck calibrate --resume --port " in told
    assert "--joints left_knee left_ankle` goes on from there" in told

    second = person("--joints", "left_knee", "left_ankle", "--resume")
    measure(second, "joint 1 of 1: left_ankle")
    second.see("Enter writes")
    second.press("\r")
    assert second.finish() == 0, second.shown
    assert list(place.iterdir()) == [place / "calibration.toml"]
    found = load_calibration(place / "calibration.toml").joint_offsets
    assert found[3:5] == pytest.approx(truth.offsets[3:5], abs=0.002)


def test_an_earlier_runs_work_is_named_and_not_used_unasked(person: Callable[..., Any], place: Path) -> None:
    place.mkdir(parents=True)
    (place / "calibration.unfinished.toml").write_text("[joint_offsets]\nleft_knee = 0.3\n")
    calibrate = person("--joints", "left_knee")
    calibrate.see("holds what an earlier run measured. --resume goes on with it")
    calibrate.see("joint 1 of 1: left_knee")
    calibrate.press("q")
    assert calibrate.finish() == 1
    assert "what you kept" not in calibrate.shown


def test_a_servo_that_is_silent_for_a_moment_costs_nothing(
    person: Callable[..., Any], duck: EmulatedDuck, place: Path
) -> None:
    calibrate = person("--joints", "left_knee", patch=PATIENT)
    calibrate.see("left_knee .*limp")
    duck.servo(23).silent = True
    calibrate.see("no answer; asking again")
    duck.servo(23).silent = False
    calibrate.see(r"left_knee \S+ rad, limp")
    measure_again(calibrate)
    assert calibrate.finish() == 0, calibrate.shown
    assert (place / "calibration.toml").exists()


def measure_again(calibrate: Any) -> None:
    calibrate.press("\r")
    calibrate.see("Enter keeps it")
    calibrate.press("\r")
    calibrate.see("Enter writes")
    calibrate.press("\r")


def test_a_file_that_cannot_be_written_leaves_the_last_step_open(
    person: Callable[..., Any], place: Path, truth: Any
) -> None:
    calibrate = person("--joints", "left_knee")
    measure(calibrate, "left_knee")
    calibrate.see("Enter writes")
    (place / "calibration.toml").mkdir()  # whatever makes the write fail
    calibrate.press("\r")
    calibrate.see("Nothing is lost: Enter tries again")
    (place / "calibration.toml").rmdir()
    calibrate.press("\r")
    assert calibrate.finish() == 0, calibrate.shown
    found = load_calibration(place / "calibration.toml").joint_offsets[3]
    assert found == pytest.approx(truth.offsets[3], abs=0.002)


def test_another_place_is_offered_for_a_file_that_cannot_be_written(
    person: Callable[..., Any], place: Path, tmp_path: Path, truth: Any
) -> None:
    calibrate = person("--joints", "left_knee")
    measure(calibrate, "left_knee")
    calibrate.see("Enter writes")
    (place / "calibration.toml").mkdir()
    calibrate.press("\r")
    calibrate.see("o another place")
    calibrate.press("o")
    calibrate.see(f"Enter writes {tmp_path}/calibration.toml")  # the home folder
    calibrate.press("\r")
    assert calibrate.finish() == 0, calibrate.shown
    assert f"duck run --calibration {tmp_path}/calibration.toml" in calibrate.shown
    found = load_calibration(tmp_path / "calibration.toml").joint_offsets[3]
    assert found == pytest.approx(truth.offsets[3], abs=0.002)
