"""What the virtual duck keeps of each run: its report, its film, and whether the duck fell."""

import json

import imageio_ffmpeg
import numpy as np
import pytest

from hardware.errors import RenderError
from microduck.render import Renderer, Shot
from microduck.virtual_body import VirtualBody
from microduck.virtual_duck import VirtualDuck, VirtualDuckOptions, run_virtual_duck, write_film

OFF = np.zeros(14, bool)


def test_runs_can_be_repeated(duck, desk, steps, stand_up):
    for count in (1, 2):
        stand_up(duck, desk)
        desk.first_step()
        steps(duck, 0.5)
        desk.torque = OFF.copy()
        steps(duck, 1.2)
        assert len(duck.reports) == count
    assert duck.reports[0].seconds == duck.reports[1].seconds == pytest.approx(0.5)


def test_scripted_fall_is_reported_as_a_fall(duck, desk, said, steps, stand_up):
    """STAND held by the servos alone: down by one second."""
    stand_up(duck, desk)
    desk.first_step()
    steps(duck, 1.5)
    desk.torque = OFF.copy()
    steps(duck, 0.1)
    (report,) = duck.reports
    assert report.fell
    assert report.seconds == pytest.approx(1.5)
    assert report.displacement_m < 0.3
    assert said[-1].startswith("run 1: 1.5 s, ") and said[-1].endswith(" fell")


def test_falling_after_torque_off_is_no_fall_of_the_run(duck, desk, body, steps, stand_up):
    stand_up(duck, desk)
    desk.first_step()
    steps(duck, 0.2)
    desk.torque = OFF.copy()
    steps(duck, 0.9)
    (report,) = duck.reports
    assert body.height < 0.08
    assert not report.fell


def test_a_duck_let_go_on_its_way_down_is_not_said_to_stand(duck, desk, body, said, steps, stand_up):
    stand_up(duck, desk)
    desk.first_step()
    while body.tilt < 0.6:  # 34 degrees: held at STAND by its servos alone it tips over
        steps(duck, 0.005)
    desk.torque = OFF.copy()
    steps(duck, 0.005)
    assert not duck.reports[0].fell
    assert said[-1].endswith("leaned by 34 degrees at its end") or said[-1].endswith(
        "leaned by 35 degrees at its end"
    )


def test_report_file_holds_every_run(tmp_path, desk, said, steps, stand_up):
    path = tmp_path / "new" / "report.json"
    duck = VirtualDuck(desk, VirtualBody(), said.append, path)
    for count in (1, 2):
        stand_up(duck, desk)
        desk.first_step()
        steps(duck, 0.4)
        desk.torque = OFF.copy()
        steps(duck, 1.2)
        runs = json.loads(path.read_text())["runs"]
        assert len(runs) == count
        assert set(runs[0]) == {
            "seconds",
            "fell",
            "path_m",
            "displacement_m",
            "mean_speed_mps",
            "heading_drift_deg",
        }
        assert runs[-1]["seconds"] == pytest.approx(0.4) and runs[-1]["fell"] is False
    assert [p.name for p in path.parent.iterdir()] == ["report.json"]


def test_film_holds_the_last_run_at_50_hz(duck, desk, steps, stand_up):
    for seconds in (0.6, 0.4):
        stand_up(duck, desk)
        desk.first_step()
        steps(duck, seconds)
        desk.torque = OFF.copy()
        steps(duck, 1.2)
    assert len(duck.film) == 21
    heights = [pose[2] for pose in duck.film]
    assert heights[0] == pytest.approx(0.12) and heights[-1] < 0.119


def test_run_still_going_at_the_end_is_reported(duck, desk, steps, stand_up):
    stand_up(duck, desk)
    desk.first_step()
    steps(duck, 0.3)
    duck.end_run()
    duck.end_run()
    assert [report.seconds for report in duck.reports] == pytest.approx([0.3])


@pytest.fixture
def gl():
    """Skip where this machine cannot draw."""
    try:
        Renderer(VirtualBody().model, Shot()).close()
    except RenderError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("gl")
def test_film_of_a_run_is_written_with_25_pictures_a_second(tmp_path, said, duck, desk, steps, stand_up):
    stand_up(duck, desk)
    desk.first_step()
    steps(duck, 0.1)
    duck.end_run()
    path = tmp_path / "run.mp4"
    write_film(path, duck.film, said.append)
    meta = next(imageio_ffmpeg.read_frames(str(path)))
    assert meta["fps"] == 25 and meta["size"] == (960, 540)
    assert imageio_ffmpeg.count_frames_and_secs(str(path))[0] == 3  # poses at 0, 0.04 and 0.08 s


@pytest.mark.usefixtures("gl")
def test_without_a_run_there_is_no_film(tmp_path, said):
    video = tmp_path / "run.mp4"
    run_virtual_duck(VirtualDuckOptions(seconds=0.01, video=video), said.append)
    assert said[-1] == f"no run to film, so no {video}"
    assert not list(tmp_path.iterdir())
