"""A duck with one fault walks, and the replay of its log names that fault."""

import json

import numpy as np
import pytest

from hardware.joints import JOINT_NAMES
from microduck.randomization import load_twin
from microduck.randomization.twin import Twin
from microduck.replay import GAP_FILE, PAGE_FILE, TWIN_FILE
from microduck.replay.document import Source
from microduck.replay.study import ReplayOptions, study
from microduck.replay.verdict import judge
from microduck.replay.write import write

ANKLE = JOINT_NAMES.index("left_ankle")


def offset(joint, angle):
    return Twin(encoder_offset=tuple(angle * (place == joint) for place in range(14)))


def replayed(log, **options):
    return study(log, ReplayOptions(**options), lambda done, text: None)


def only_cause(found):
    """The one cause that is named, with its value."""
    (finding,) = judge(found).causes
    return finding.cause.parameter, finding.cause.component, finding.value


def test_the_modelled_duck_shows_no_gap_but_noise(recorded):
    found = replayed(recorded(), actuator="position")
    verdict = judge(found)
    assert verdict.title == "No gap but noise"
    assert verdict.causes == ()
    assert found.twin == Twin()
    gap = found.gaps[0]
    assert gap.position_rms < 0.004  # an encoder's count is 0.0015 rad
    assert all(joint.rms < 0.01 and abs(joint.bias) < 0.002 for joint in gap.joints)
    assert abs(gap.delay) < 0.0005
    assert gap.gravity_rms < 0.002


def test_a_delay_of_20_ms_is_named(recorded):
    found = replayed(recorded(delay=0.02), actuator="position")
    parameter, _, value = only_cause(found)
    assert parameter == "delay"
    assert value == pytest.approx(0.02, abs=0.002)
    assert found.gaps[0].delay > 0.01  # as the joints' angles tell it
    assert found.search.findings[0].share > 0.9
    assert found.twin.delay == pytest.approx(value, abs=1e-4)


def test_a_clock_that_is_uneven_makes_no_gap(recorded):
    """As over a port: a late read, a late target and a beat that stumbles are in the log, and so no gap."""
    log = recorded(uneven=True)
    found = replayed(log, actuator="position")
    assert np.abs(np.diff(log.arrays["time"]) - 0.02).max() > 0.001
    assert judge(found).title == "No gap but noise"
    assert found.search.start < 1.0
    assert found.gaps[0].position_rms < 0.004
    assert abs(found.gaps[0].delay) < 0.0005


def test_a_delay_of_20_ms_is_named_on_an_uneven_clock(recorded):
    found = replayed(recorded(uneven=True, delay=0.02), actuator="position")
    parameter, _, value = only_cause(found)
    assert parameter == "delay"
    assert value == pytest.approx(0.02, abs=0.002)


def test_half_the_gain_is_named_whatever_the_servos_are_taken_for(recorded):
    found = replayed(recorded(gain_scale=0.5))
    assert found.servos.actuator == "position"
    parameter, _, value = only_cause(found)
    assert parameter == "p_gain_scale"
    assert value == pytest.approx(0.5, rel=0.05)


def test_a_bus_as_late_as_a_virtual_ducks_is_no_fault(recorded):
    found = replayed(recorded(seconds=4.0, delay=0.005), actuator="position")
    verdict = judge(found)
    assert verdict.title == "Small differences, no fault"
    assert verdict.causes == ()
    assert found.twin.delay == pytest.approx(0.005, abs=0.001)


def test_twice_the_friction_is_named(recorded):
    found = replayed(recorded(friction_scale=2.0), actuator="position")
    parameter, _, value = only_cause(found)
    assert parameter == "servo_friction_scale"
    assert value == pytest.approx(2.0, rel=0.2)


@pytest.fixture(scope="module")
def ankle_log(recorded):
    return recorded(twin=offset(ANKLE, 0.05), actuator="position")


def test_an_encoder_offset_is_named_with_its_joint(ankle_log, tmp_path):
    found = replayed(ankle_log, actuator="position")
    parameter, joint, value = only_cause(found)
    assert (parameter, joint) == ("encoder_offset", ANKLE)
    assert value == pytest.approx(0.05, abs=0.012)
    verdict = judge(found)
    write(tmp_path, Source("walk.tdz", "microduck replay", "today"), ankle_log, found, verdict)
    assert load_twin(tmp_path / TWIN_FILE) == found.twin
    assert found.twin.encoder_offset[ANKLE] == pytest.approx(value, abs=1e-4)
    told = json.loads((tmp_path / GAP_FILE).read_text(), parse_constant=pytest.fail)
    assert told["causes"][0]["cause"] == "encoder offset of left_ankle"
    assert told["gap"]["position_rms"] > 2 * told["gap_left"]["position_rms"]
    assert [joint["joint"] for joint in told["gap"]["joints"]] == list(JOINT_NAMES)
    page = (tmp_path / PAGE_FILE).read_text()
    assert "encoder offset of left_ankle" in page.lower()
    assert page.count("data:image/png;base64,") == 6
    for outside in ('src="http', "href=", "<script", "@import", "url("):
        assert outside not in page


def test_a_twin_replays_its_own_log_without_a_gap(recorded):
    twin = Twin(delay=0.02, voltage=6.8, servo_friction_scale=1.3)
    log = recorded(twin=twin)
    found = replayed(log, twin=twin)
    assert found.servos.actuator == "xl330"
    assert judge(found).title == "No gap but noise"
    assert found.twin == twin
