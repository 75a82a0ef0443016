"""The virtual duck: what it reports, the hand, its runs and their record. Physics is stepped by hand."""

import json
import os
from dataclasses import dataclass, field

import imageio_ffmpeg
import mujoco
import numpy as np
import pytest

from firmware_bridge.emulator.duck import EmulatedDuck
from hardware.errors import ConfigError, RenderError
from hardware.joints import JOINT_NAMES, STAND
from microduck.hand import Grip, Hand
from microduck.render import Renderer, Shot
from microduck.viewer import Viewer
from microduck.virtual_body import STEP_S, VirtualBody
from microduck.virtual_duck import VirtualDuck, VirtualDuckOptions, run_virtual_duck, write_film

ON, OFF = np.ones(14, bool), np.zeros(14, bool)
GAIN = np.full(14, 200)
KNEE, NECK, HEAD_YAW = (JOINT_NAMES.index(name) for name in ("left_knee", "neck_pitch", "head_yaw"))


@dataclass
class Desk:
    """A bus without bytes: what a client would have written, and what the duck last reported."""

    torque: np.ndarray = field(default_factory=OFF.copy)
    goals: np.ndarray = field(default_factory=STAND.copy)
    p_gains: np.ndarray = field(default_factory=GAIN.copy)
    state: dict = field(default_factory=dict)
    imu: tuple = ()

    def set_state(self, position, velocity=None, current=None, voltage=None, temperature=None):
        given = {
            "position": position,
            "velocity": velocity,
            "current": current,
            "voltage": voltage,
            "temperature": temperature,
        }
        self.state |= {name: np.copy(value) for name, value in given.items() if value is not None}

    def set_imu(self, angular_velocity, quaternion):
        self.imu = (angular_velocity.copy(), quaternion.copy())


@pytest.fixture
def desk():
    return Desk()


@pytest.fixture
def said():
    return []


@pytest.fixture
def duck(desk, said):
    return VirtualDuck(desk, VirtualBody(), said.append)


def steps(duck, seconds):
    for _ in range(round(seconds / STEP_S)):
        duck.step()


def stand_up(duck, desk):
    """Give torque, with the goals at STAND, until the joints are there."""
    desk.torque, desk.goals = ON.copy(), STAND.copy()
    steps(duck, 1.5)


def first_step(desk):
    desk.goals = STAND.copy()
    desk.goals[HEAD_YAW] += 0.05


def body_of(duck):
    return duck._body


# What the duck reports


def test_bus_hears_position_velocity_current_voltage_and_temperature(duck, desk):
    stand_up(duck, desk)
    body = body_of(duck)
    assert desk.state["position"] == pytest.approx(body.position)
    assert desk.state["velocity"] == pytest.approx(body.velocity)
    assert desk.state["current"] == pytest.approx(body.data.actuator_force / 0.366013, rel=1e-5)
    assert np.abs(desk.state["current"]).max() > 0.01
    assert desk.state["voltage"] == 7.4
    assert 20 < desk.state["temperature"] < 50


def test_imu_reports_turn_rate_and_orientation_of_its_site(duck, desk):
    stand_up(duck, desk)
    first_step(desk)
    steps(duck, 0.5)
    body = body_of(duck)
    mujoco.mj_forward(body.model, body.data)
    rate, quaternion = desk.imu
    assert np.linalg.norm(rate) > 0.1
    assert rate == pytest.approx(body.data.sensor("angular-velocity").data, abs=1e-9)
    assert quaternion == pytest.approx(body.data.sensor("orientation").data, abs=1e-9)


def test_a_real_bus_carries_goals_in_and_angles_out(said):
    bus = EmulatedDuck(follow=False)
    with bus:
        duck = VirtualDuck(bus, VirtualBody(), said.append)
        steps(duck, 0.5)
        assert bus.positions == pytest.approx(body_of(duck).position, abs=0.001)
        assert np.abs(bus.positions - STAND).max() > 0.2  # limp in the air, it hangs


# The hand


def held_height(duck):
    return body_of(duck).data.qpos[:7].tolist()


UPRIGHT = [0, 0, 0.14, 1, 0, 0, 0]  # it stands at 0.12


def test_a_limp_duck_is_held_upright_and_still(duck, desk):
    steps(duck, 2.0)
    assert held_height(duck) == pytest.approx(UPRIGHT, abs=1e-12)
    assert desk.imu[0] == pytest.approx([0, 0, 0])
    assert not duck.reports


def test_a_held_duck_moves_its_joints_as_on_a_fixed_base(duck, desk):
    """A trunk that fell freely would not feel its limbs' weight: held, 20 degrees of head lead to a sag."""
    stand_up(duck, desk)
    sag = np.abs(body_of(duck).position - STAND)
    assert 0.03 < sag.max() < 0.1


def test_hand_holds_while_the_servos_rise_and_hold_stand(duck, desk):
    desk.torque = ON.copy()
    start = np.array(body_of(duck).position) + 0.3
    for part in np.linspace(0, 1, 100):
        desk.goals = start + part * (STAND - start)
        steps(duck, 0.02)
    steps(duck, 2.0)
    assert held_height(duck) == pytest.approx(UPRIGHT, abs=1e-12)


def test_hand_lets_go_at_the_first_goal_that_leaves_stand(duck, desk, said):
    stand_up(duck, desk)
    desk.goals = STAND + 0.019
    steps(duck, 0.1)
    assert held_height(duck) == pytest.approx(UPRIGHT, abs=1e-12)
    first_step(desk)
    steps(duck, 0.1)
    assert held_height(duck) != pytest.approx(UPRIGHT, abs=1e-4)
    assert said == ["the hand lets go"]


def test_hand_keeps_a_duck_that_never_reached_stand(duck, desk):
    desk.torque = ON.copy()
    desk.goals = STAND + 0.3
    steps(duck, 1.0)
    assert held_height(duck) == pytest.approx(UPRIGHT, abs=1e-12)


def test_hand_lets_go_even_while_a_limp_head_still_lags_behind_the_rise():
    body = VirtualBody()
    hand = Hand(body)
    body.data.qpos[7 + NECK] = -1.57
    assert hand.update(ON, STAND) is None
    assert hand.update(ON, STAND + 0.05) is Grip.LET_GO


def test_hand_keeps_a_duck_with_one_limp_servo(duck, desk):
    stand_up(duck, desk)
    desk.torque[KNEE] = False
    first_step(desk)
    steps(duck, 0.5)
    assert held_height(duck) == pytest.approx(UPRIGHT, abs=1e-12)


def test_fallen_duck_is_picked_up_a_second_after_its_torque_went_off(duck, desk, said):
    stand_up(duck, desk)
    first_step(desk)
    steps(duck, 2.0)
    desk.torque = OFF.copy()
    steps(duck, 0.9)
    lying = body_of(duck).data.qpos[:3].copy()
    assert lying[2] < 0.08
    steps(duck, 0.2)
    x, y, z, *orientation = held_height(duck)
    assert z == pytest.approx(0.14) and orientation == pytest.approx([1, 0, 0, 0])
    assert (x, y) == pytest.approx(lying[:2], abs=0.02)
    assert said[-1] == "the hand holds the duck again"


def test_soles_of_a_held_duck_touch_nothing_not_even_after_a_fall(duck, desk):
    body = body_of(duck)

    def on_the_floor():
        floor = mujoco.mj_name2id(body.model, mujoco.mjtObj.mjOBJ_GEOM, "floor")
        return (body.data.contact.geom == floor).any()

    for _ in range(2):
        steps(duck, 2.0)
        assert not on_the_floor()
        stand_up(duck, desk)
        assert not on_the_floor()
        first_step(desk)
        steps(duck, 1.5)
        assert on_the_floor()
        desk.torque = OFF.copy()
        steps(duck, 1.2)


def test_hand_puts_the_duck_down_before_it_lets_go(duck, desk):
    stand_up(duck, desk)
    first_step(desk)
    duck.step()
    body = body_of(duck)
    assert body.height == pytest.approx(0.12, abs=5e-4)
    assert np.abs(body.data.qvel[:3]).max() < 0.1  # dropped from 2 cm it would soon be 0.6 m/s


def test_a_duck_that_gets_torque_again_in_time_is_left_lying(duck, desk):
    stand_up(duck, desk)
    first_step(desk)
    steps(duck, 2.0)
    for _ in range(4):
        desk.torque = OFF.copy()
        steps(duck, 0.6)
        desk.torque = ON.copy()
        steps(duck, 0.1)
    assert body_of(duck).height < 0.1


def test_runs_can_be_repeated(duck, desk):
    for count in (1, 2):
        stand_up(duck, desk)
        first_step(desk)
        steps(duck, 0.5)
        desk.torque = OFF.copy()
        steps(duck, 1.2)
        assert len(duck.reports) == count
    assert duck.reports[0].seconds == duck.reports[1].seconds == pytest.approx(0.5)


# The report


def test_scripted_fall_is_reported_as_a_fall(duck, desk, said):
    """STAND held by the servos alone: down by one second."""
    stand_up(duck, desk)
    first_step(desk)
    steps(duck, 1.5)
    desk.torque = OFF.copy()
    steps(duck, 0.1)
    (report,) = duck.reports
    assert report.fell
    assert report.seconds == pytest.approx(1.5)
    assert report.displacement_m < 0.3
    assert said[-1].startswith("run 1: 1.5 s, ") and said[-1].endswith(" fell")


def test_falling_after_torque_off_is_no_fall_of_the_run(duck, desk):
    stand_up(duck, desk)
    first_step(desk)
    steps(duck, 0.2)
    desk.torque = OFF.copy()
    steps(duck, 0.9)
    (report,) = duck.reports
    assert body_of(duck).height < 0.08
    assert not report.fell


def test_report_file_holds_every_run(tmp_path, desk, said):
    path = tmp_path / "new" / "report.json"
    duck = VirtualDuck(desk, VirtualBody(), said.append, path)
    for count in (1, 2):
        stand_up(duck, desk)
        first_step(desk)
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


def test_film_holds_the_last_run_at_50_hz(duck, desk):
    for seconds in (0.6, 0.4):
        stand_up(duck, desk)
        first_step(desk)
        steps(duck, seconds)
        desk.torque = OFF.copy()
        steps(duck, 1.2)
    assert len(duck.film) == 21
    heights = [pose[2] for pose in duck.film]
    assert heights[0] == pytest.approx(0.12) and heights[-1] < 0.119


def test_run_still_going_at_the_end_is_reported(duck, desk):
    stand_up(duck, desk)
    first_step(desk)
    steps(duck, 0.3)
    duck.end_run()
    duck.end_run()
    assert [report.seconds for report in duck.reports] == pytest.approx([0.3])


# The whole


def test_virtual_duck_tells_its_port_links_it_and_ends_in_time(tmp_path, said):
    link = tmp_path / "duck"
    seen = []

    def notify(text):
        seen.append(os.path.realpath(link))
        said.append(text)

    assert run_virtual_duck(VirtualDuckOptions(seconds=0.05, link=link), notify) == []
    assert said == [f"the virtual duck is on {link}"]
    assert seen[0].startswith("/dev/pts/")
    assert not link.is_symlink()


def test_virtual_duck_stops_when_asked(said):
    assert run_virtual_duck(VirtualDuckOptions(), said.append, lambda: True) == []
    assert said[0].startswith("the virtual duck is on /dev/pts/")


def test_link_replaces_an_old_link_but_no_file(tmp_path, said):
    link = tmp_path / "duck"
    link.symlink_to("/dev/pts/none")
    run_virtual_duck(VirtualDuckOptions(seconds=0.01, link=link), said.append)
    link.write_text("a file")
    with pytest.raises(ConfigError, match="choose another path"):
        run_virtual_duck(VirtualDuckOptions(seconds=0.01, link=link), said.append)
    assert link.read_text() == "a file"


def test_report_is_tried_before_the_start(tmp_path, said):
    options = VirtualDuckOptions(seconds=0.01, report=tmp_path / "report.json")
    run_virtual_duck(options, said.append)
    assert json.loads(options.report.read_text()) == {"runs": []}
    (tmp_path / "file").write_text("in the way")
    said.clear()
    with pytest.raises(ConfigError, match="choose another place"):
        run_virtual_duck(VirtualDuckOptions(report=tmp_path / "file" / "report.json"), said.append)
    assert not said


@pytest.fixture
def gl():
    """Skip where this machine cannot draw."""
    try:
        Renderer(VirtualBody().model, Shot()).close()
    except RenderError as error:
        pytest.skip(str(error))


def test_film_of_a_run_is_written_with_25_pictures_a_second(gl, tmp_path, said, duck, desk):
    stand_up(duck, desk)
    first_step(desk)
    steps(duck, 0.1)
    duck.end_run()
    path = tmp_path / "run.mp4"
    write_film(path, duck.film, said.append)
    meta = next(imageio_ffmpeg.read_frames(str(path)))
    assert meta["fps"] == 25 and meta["size"] == (960, 540)
    assert imageio_ffmpeg.count_frames_and_secs(str(path))[0] == 3  # poses at 0, 0.04 and 0.08 s


def test_without_a_run_there_is_no_film(gl, tmp_path, said):
    video = tmp_path / "run.mp4"
    run_virtual_duck(VirtualDuckOptions(seconds=0.01, video=video), said.append)
    assert said[-1] == f"no run to film, so no {video}"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_impossible_lengths_are_refused(seconds):
    with pytest.raises(ConfigError, match="seconds"):
        VirtualDuckOptions(seconds=seconds)


def test_video_must_be_an_mp4(tmp_path):
    with pytest.raises(ConfigError, match=r"must end in \.mp4"):
        VirtualDuckOptions(video=tmp_path / "walk.gif")


def test_view_without_a_screen_says_so(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    body = VirtualBody()
    with pytest.raises(RenderError, match="no screen; run without a view"):
        Viewer(body.model, body.data)
