"""The file beside a calibration in which each value is that was kept, and no other."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from firmware_bridge.calibrate.dialogue import Task
from firmware_bridge.calibrate.draft import Draft
from firmware_bridge.cli import calibration_file
from firmware_bridge.cli.calibration import _again
from firmware_bridge.cli.calibration_file import Outcome
from hardware.calibration import IMU_BOARD_MOUNTING, Calibration, Measured, load_measured, save_measured
from hardware.errors import CalibrationError, ConfigError


class Listener:
    """A person who only reads."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def tell(self, text: str) -> None:
        self.told.append(text)

    def show(self, text: str) -> None: ...

    def key(self) -> str | None: ...

    def forget_keys(self) -> None: ...


class Run:
    """A calibration of the left knee into a folder."""

    def __init__(self, folder: Path, old: Calibration | None = None) -> None:
        self.draft, self.console = Draft(old or Calibration()), Listener()
        self.outcome = Outcome(folder / "calibration.toml", self.draft, self.console)
        self.unfinished = folder / "calibration.unfinished.toml"
        knee = Task(
            begin=str,
            measure=str,
            keep=lambda: self.draft.offsets.update(left_knee=0.0),
            skip=self.draft.offsets.clear,
        )
        self.knee = self.outcome.remembered(knee)


def test_only_what_was_kept_counts_as_measured_also_where_it_is_zero(tmp_path: Path) -> None:
    Run(tmp_path).knee.keep()
    old = Calibration((0.1,) * 14, (1.0, 0.0, 0.0, 0.0), (0.01, 0.02, 0.03))  # put back meanwhile
    again = Run(tmp_path, old)
    again.outcome.begin(resume=True)
    assert again.draft.measured == Measured({"left_knee": 0.0})
    assert again.draft.calibration() == Calibration(
        (0.1, 0.1, 0.1, 0.0, *[0.1] * 10), old.imu_mounting, old.gyro_bias
    )


def test_a_value_that_is_skipped_after_it_was_kept_is_forgotten(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.knee.keep()
    assert run.unfinished.exists()
    run.knee.skip()
    assert not run.unfinished.exists()
    run.outcome.tell_unfinished("")
    assert not run.console.told


def test_a_skip_leaves_what_an_earlier_run_kept(tmp_path: Path) -> None:
    run = Run(tmp_path)
    save_measured(Measured({"left_ankle": 0.1}), run.unfinished)
    run.outcome.begin(resume=False)
    run.knee.skip()
    assert load_measured(run.unfinished) == Measured({"left_ankle": 0.1})


@pytest.mark.parametrize("resume", [True, False])
def test_an_unfinished_file_that_is_a_link_is_refused(tmp_path: Path, resume: bool) -> None:
    run = Run(tmp_path)
    other = tmp_path / "duck2.toml"
    save_measured(Measured({"left_knee": 0.123}), other)
    run.unfinished.symlink_to(other)
    with pytest.raises(ConfigError, match=r"calibration\.unfinished\.toml is a link"):
        run.outcome.begin(resume)
    assert load_measured(other) == Measured({"left_knee": 0.123})


def test_a_full_disk_is_told_and_another_place_offered_even_without_room_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, roomy = tmp_path / "full", tmp_path / "roomy"
    full.mkdir()
    roomy.mkdir()
    run = Run(full)
    run.knee.keep()
    run.unfinished.unlink()
    run.unfinished.mkdir()  # what makes the write fail
    run.knee.keep()
    assert "not safe from a power cut yet" in run.console.told[-1]
    run.outcome.tell_unfinished("")
    assert run.console.told[-1].startswith("what you kept, but for the last of it, is in ")

    def no_room() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory")

    monkeypatch.setattr(calibration_file, "gettempdir", no_room)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.chdir(roomy)
    offer = run.outcome.task().keys["o"]
    offer()
    assert run.outcome.output == roomy / "calibration.toml"


def test_a_name_too_long_for_a_file_beside_it_is_refused_at_the_begin(tmp_path: Path) -> None:
    run = Run(tmp_path)
    long = Outcome(tmp_path / f"{'a' * 245}.toml", run.draft, run.console)
    with pytest.raises(ConfigError, match=r"File name too long; choose another --output"):
        long.begin(resume=False)


def test_going_on_is_told_with_all_that_says_what_is_calibrated_and_where() -> None:
    options = argparse.Namespace(
        config=Path("my duck.toml"), port="/dev/ttyUSB0", output=None, imu=False, joints=["left_knee"]
    )
    assert _again(options) == " --config 'my duck.toml' --port /dev/ttyUSB0 --joints left_knee"


def test_what_was_measured_reads_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    for measured in (
        Measured(),
        Measured({"left_knee": -0.0125}),
        Measured({}, IMU_BOARD_MOUNTING),
        Measured({"right_ankle": 1 / 3}, IMU_BOARD_MOUNTING, (0.01, -0.02, 0.03)),
    ):
        save_measured(measured, path)
        assert load_measured(path) == measured


def test_no_other_place_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration_file, "_elsewhere", lambda name: iter(()))
    with pytest.raises(CalibrationError, match="there is no other place"):
        Run(tmp_path).outcome.task().keys["o"]()
