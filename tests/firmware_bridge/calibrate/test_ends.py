"""However `duck calibrate` ends: limp servos, and the old file until a new one is whole."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from firmware_bridge.cli import calibration, main
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.robot.imu import board
from firmware_bridge.wire import registers
from hardware.calibration import Calibration, load_calibration, save_calibration
from hardware.joints import SERVO_IDS

HANG_S = 60
OLD = Calibration((0.1,) * 14, gyro_bias=(0.01, 0.0, 0.0))


@pytest.fixture
def old(place: Path) -> Path:
    """A calibration where it is looked for."""
    place.mkdir(parents=True)
    save_calibration(OLD, place / "calibration.toml")
    return place / "calibration.toml"


class Ended(NamedTuple):
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def scripted(
    duck: EmulatedDuck,
    place: Path,
    patient: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Ended]:
    """Runs `duck calibrate` with keys from a pipe."""
    monkeypatch.setattr(board, "SAMPLE_PERIOD_S", 0.001)
    monkeypatch.setattr(calibration, "TICK_S", 0.001)

    def run(keys: str, *arguments: str) -> Ended:
        read, write = os.pipe()
        os.write(write, keys.encode())
        os.close(write)
        with os.fdopen(read) as pipe:
            monkeypatch.setattr(sys, "stdin", pipe)
            try:
                code = main(["calibrate", "--port", duck.port, *arguments])
            except SystemExit as end:
                code = int(end.code or 0)
        return Ended(code, *capsys.readouterr())

    return run


def limp(duck: EmulatedDuck) -> bool:
    return not any(duck.servo(device).peek(registers.TORQUE_ENABLE) for device in SERVO_IDS)


def hold_a_joint(person: Callable[..., Any], patch: str = "") -> Any:
    calibrate = person("--joints", "left_knee", patch=patch)
    calibrate.see("left_knee .*limp")
    calibrate.press("h")
    calibrate.see("held")
    return calibrate


def test_ctrl_c_leaves_a_limp_duck_and_the_old_file(
    person: Callable[..., Any], duck: EmulatedDuck, old: Path
) -> None:
    calibrate = hold_a_joint(person)
    assert duck.torque.sum() == 1
    calibrate.press("\x03")
    assert calibrate.finish() == 130
    assert "stopped: SIGINT received; the old file is as it was, and every servo is limp" in calibrate.shown
    assert limp(duck) and load_calibration(old) == OLD


def test_a_program_that_is_told_to_end_leaves_a_limp_duck(
    person: Callable[..., Any], duck: EmulatedDuck, old: Path
) -> None:
    calibrate = hold_a_joint(person)
    calibrate.process.send_signal(signal.SIGTERM)
    assert calibrate.finish() == 143
    assert limp(duck) and load_calibration(old) == OLD


def test_a_killed_program_leaves_a_joint_that_lets_go_by_itself(
    person: Callable[..., Any], duck: EmulatedDuck
) -> None:
    calibrate = hold_a_joint(person, patch="servos.WATCHDOG_S = 0.2")
    calibrate.process.kill()
    calibrate.process.wait()
    give_up = time.monotonic() + HANG_S
    while duck.torque.any():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_an_error_nobody_expected_leaves_a_limp_duck(
    person: Callable[..., Any], duck: EmulatedDuck, old: Path
) -> None:
    patch = "from firmware_bridge.calibrate import mover; mover.JointMover.nudge = lambda *_: 1 / 0"
    calibrate = hold_a_joint(person, patch)
    calibrate.press("+")
    assert calibrate.finish() == 1
    assert limp(duck) and load_calibration(old) == OLD


def test_a_bus_that_is_lost_ends_it_with_an_error_and_the_old_file(
    person: Callable[..., Any], duck: EmulatedDuck, old: Path
) -> None:
    calibrate = hold_a_joint(person, patch="servos.WATCHDOG_S = 0.2; transport.ACK_MARGIN_S = 0.03")
    duck.servo(23).silent = True
    assert calibrate.finish() == 1
    assert "torque may still be on at left_knee (id 23); switch the battery off" in calibrate.shown
    give_up = time.monotonic() + HANG_S
    while duck.torque.any():
        assert time.monotonic() < give_up
        time.sleep(0.02)
    assert load_calibration(old) == OLD


def test_a_terminal_that_goes_away_ends_it(person: Callable[..., Any], duck: EmulatedDuck, old: Path) -> None:
    calibrate = hold_a_joint(person)
    os.close(calibrate.end)
    assert calibrate.process.wait(timeout=HANG_S) in (1, 129)
    calibrate.end = os.open(os.devnull, os.O_RDWR)  # for the fixture to close
    assert limp(duck) and load_calibration(old) == OLD


def test_a_script_measures_one_joint_and_leaves_the_rest_as_it_was(
    scripted: Callable[..., Any], duck: EmulatedDuck, truth: Any, old: Path, watched: Any
) -> None:
    duck.turn("left_knee", 0.0)
    done = scripted("\n\n\n", "--joints", "left_knee")
    assert done.returncode == 0, done.stderr
    found = load_calibration(old)
    assert found.joint_offsets[3] == pytest.approx(truth.offsets[3], abs=0.001)
    assert {*found.joint_offsets[:3], *found.joint_offsets[4:]} == {0.1}
    assert (found.imu_mounting, found.gyro_bias) == (OLD.imu_mounting, OLD.gyro_bias)
    assert not watched.driven
    told = f"left_knee +0.1000 {found.joint_offsets[3]:+.4f} rad"
    assert told in " ".join(done.stderr.split()) and f"wrote {old}" in done.stderr


def test_a_script_that_ends_early_writes_nothing(scripted: Callable[..., Any], old: Path) -> None:
    done = scripted("\n\n", "--joints", "left_knee")
    assert done.returncode == 1 and load_calibration(old) == OLD
    assert "stopped: the keys' input ended; the old file is as it was" in done.stderr


def test_back_and_again_and_skip_find_their_way(
    scripted: Callable[..., Any], duck: EmulatedDuck, truth: Any, place: Path
) -> None:
    # First joint measured and kept; second one back; first measured, again, measured, kept; second skipped.
    done = scripted(
        "\n\nb\nr\n\ns\n", "--joints", "left_knee", "left_ankle", "--output", str(place / "a.toml")
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("joint ")] == [
        "joint 1 of 2: left_knee (id 23), limp",
        "joint 2 of 2: left_ankle (id 24), limp",
        "joint 1 of 2: left_knee (id 23), limp",
        "joint 2 of 2: left_ankle (id 24), limp",
    ]
    found = load_calibration(place / "a.toml").joint_offsets
    assert found[3] != 0.0 and found[4] == 0.0


def test_nothing_measured_is_nothing_written(scripted: Callable[..., Any], place: Path) -> None:
    done = scripted("s\n", "--joints", "left_knee")
    assert done.returncode == 1 and "there is nothing to write" in done.stderr
    assert not list(place.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--joints", "left_elbow"], "no joint is called left_elbow; the joints are left_hip_yaw, "),
        (["--output", "/dev/null"], "cannot write /dev/null: it is no file"),
        (["--output", "/proc/nowhere/a.toml"], "cannot make the folder /proc/nowhere"),
        (["--output", "/proc/a.toml"], "cannot write into /proc"),
        (["--resume"], "calibration.unfinished.toml to go on with; leave --resume out"),
        (["--config", "/no/duck.toml"], "/no/duck.toml is not a file"),
    ],
)
def test_what_cannot_end_well_is_refused_before_the_port_is_opened(
    scripted: Callable[..., Any], duck: EmulatedDuck, arguments: list[str], message: str
) -> None:
    done = scripted("", *arguments)
    assert done.returncode == 1 and message in done.stderr
    assert duck.line.heard == 0


def test_a_damaged_old_file_is_not_written_over(
    scripted: Callable[..., Any], duck: EmulatedDuck, old: Path
) -> None:
    old.write_text("[joint_offsets]\nleft_knee = 9\n")
    done = scripted("\n\n\n", "--joints", "left_knee")
    assert done.returncode == 1 and "move it away" in done.stderr and duck.line.heard == 0
    assert old.read_text() == "[joint_offsets]\nleft_knee = 9\n"


def test_a_stiff_duck_is_left_alone(scripted: Callable[..., Any], duck: EmulatedDuck, watched: Any) -> None:
    duck.servo(12).poke(registers.TORQUE_ENABLE, 1)
    done = scripted("\n\n\n", "--joints", "left_knee")
    assert (
        done.returncode == 1 and "torque is on at right_hip_pitch (id 12); lay the duck down" in done.stderr
    )
    assert watched.driven == {12} and duck.servo(12).torque


def test_the_imu_has_to_be_there_before_anything_is_asked(
    scripted: Callable[..., Any], duck: EmulatedDuck
) -> None:
    duck.unplug(200)
    done = scripted("\n")
    assert done.returncode == 1 and "device 200 gave no good answer" in done.stderr
    assert "joint 1" not in done.stderr


def test_a_calibration_that_fits_passes_the_check(
    scripted: Callable[..., Any], duck: EmulatedDuck, truth: Any, place: Path
) -> None:
    place.mkdir(parents=True)
    save_calibration(
        Calibration(tuple(truth.offsets), tuple(truth.mounting), tuple(truth.bias)), place / "own.toml"
    )
    (place / "duck.toml").write_text('[calibration]\nfile = "own.toml"\n')
    done = scripted("\n\n", "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tilt of the upright duck: 0." in done.stdout


def test_a_calibration_that_does_not_fit_fails_the_check(
    scripted: Callable[..., Any], duck: EmulatedDuck
) -> None:
    done = scripted("\n\n", "--check")  # the board's usual mounting, which this duck has not
    assert done.returncode == 1 and "measure anew: `duck calibrate --imu`" in done.stdout


def test_check_goes_with_nothing_that_measures(scripted: Callable[..., Any]) -> None:
    done = scripted("", "--check", "--imu")
    assert done.returncode == 2 and "--check measures nothing anew" in done.stderr
