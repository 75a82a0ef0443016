"""`duck run --record`: what is left of a drive, however it ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.recording.log import read_log

MOST_LOST_S = 1.0
"""Most of a drive that `kill -9` may take from its recording [s]."""
NOTED = """
from firmware_bridge.recording import recorder
add, noted = recorder.Recorder.add, open({path!r}, "ab", buffering=0)
def note(self, tick):
    add(self, tick)
    noted.write(b"%.9f\\n" % tick.time_s)
recorder.Recorder.add = note
"""
"""Patch that writes the time of each tick to a file before the next one."""


def test_a_whole_drive_is_in_its_recording_from_limp_to_limp(
    launch: Callable[..., Any], place: Path, duck: EmulatedDuck
) -> None:
    run = launch("--command", "0.2", "0", "0", "--seconds", "1", "--record", str(place / "a.tdz"))
    code, out, err = run.finish()
    assert code == 0 and "recorded " in err.splitlines()[-1]
    log = read_log(place / "a.tdz")
    assert log.complete and f"{log.ticks}, {log.arrays['missed'][-1]} missed" in out
    events = [event["mode"] for event in log.meta["events"]]
    assert events == ["rise", "run", "sit", "stopped"]
    driven = (log.names("mode") == "run") & log.arrays["fresh"]  # a busy machine may miss a sample
    assert np.isfinite(log.arrays["action"][driven]).all() and log.arrays["applied"].shape[1] == 14
    # The test policy has 0.25 for the left hip yaw, times 0.8 rad; that joint is at 0 in STAND.
    assert log.arrays["action"][driven][-1, 0] == 0.25
    assert log.arrays["requested"][driven][-1, 0] == pytest.approx(0.2)
    assert log.arrays["command_requested"][driven][-1].tolist() == pytest.approx([0.2, 0.0, 0.0])
    assert np.isnan(log.arrays["applied"][log.names("mode") == "stopped"]).all()


def test_kill_9_loses_no_more_than_the_last_second(
    launch: Callable[..., Any], place: Path, wait_until: Callable[[Callable[[], Any]], None]
) -> None:
    noted = place / "ticks"
    run = launch("--record", str(place / "a.tdz"), patch=NOTED.format(path=str(noted)))
    run.wait_for("run")
    wait_until(lambda: noted.read_bytes().count(b"\n") > 150)
    run.process.kill()
    assert run.process.wait() == -9
    ran = np.array(noted.read_text().split(), float)
    log = read_log(place / "a.tdz.part")
    assert np.allclose(log.arrays["time"], ran[: log.ticks], atol=1e-6)
    lost = ran[log.ticks :]
    assert len(lost) == 0 or lost[-1] - lost[0] <= MOST_LOST_S
    assert not log.complete and log.names("mode")[-1] == "run"


def test_a_disk_that_runs_full_ends_the_recording_and_not_the_drive(
    launch: Callable[..., Any], place: Path, duck: EmulatedDuck
) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))"
    run = launch("--seconds", "2", "--record", str(place / "a.tdz"), patch=full)
    code, out, err = run.finish()
    assert code == 0 and "stopped: drove the time asked for" in out and not duck.torque.any()
    assert err.count("the recording ends here, the drive goes on: File too large") == 1
    assert "Traceback" not in err
    (left,) = place.glob("a.tdz*")
    log = read_log(left)
    assert 0 < log.ticks < 30_000 / 672 and not log.complete


def test_a_folder_gets_a_dated_recording(launch: Callable[..., Any], place: Path) -> None:
    (place / "logs").mkdir()
    code, _, _ = launch("--seconds", "0.2", "--record", str(place / "logs")).finish()
    (path,) = (place / "logs").iterdir()
    assert (
        code == 0 and path.name.startswith(time.strftime("duck-%Y", time.gmtime())) and path.suffix == ".tdz"
    )
    assert read_log(path).complete


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "name a file that ends in .tdz, or a folder that is there"),
        ("no/a.tdz", "there is no folder"),
        ("old.tdz", "exists already; name another file"),
    ],
)
def test_a_place_where_nothing_can_be_recorded_is_refused_before_anything_moves(
    launch: Callable[..., Any], place: Path, duck: EmulatedDuck, name: str, text: str
) -> None:
    (place / "old.tdz").write_text("precious")
    code, _, err = launch("--record", str(place / name)).finish()
    assert code == 1 and text in err and len(err.splitlines()) == 1
    assert not duck.torque.any() and (place / "old.tdz").read_text() == "precious"
