import re

import pytest
import torch

from hardware.errors import DuckError
from microduck.rewards import Features, features


@pytest.fixture
def simulator():
    """Sources that note each question."""
    asked = []

    def source(name, value):
        def ask():
            asked.append(name)
            return value

        return ask

    sources = {
        "foot_velocity": source("foot_velocity", torch.tensor([[[0.3, 0.4], [0.0, 0.0]]])),
        "joint_torque": source("joint_torque", torch.ones(1, 14)),
    }
    return sources, asked


def test_the_simulator_is_asked_only_for_what_is_read_and_only_once(simulator):
    sources, asked = simulator
    read = Features({"upright": torch.ones(1)}, sources)
    assert asked == []
    assert read["foot_speed"].tolist() == [[0.5, 0.0]]
    assert torch.equal(read["foot_velocity"][0, 0], torch.tensor([0.3, 0.4]))
    assert asked == ["foot_velocity"]


def test_a_derived_feature_is_computed_once():
    read = Features({"command": torch.tensor([[0.3, 0.4]])})
    assert read["command_speed"] is read["command_speed"]
    assert read["command_speed"].tolist() == [0.5]


def test_after_its_step_the_simulator_is_not_asked_any_more(simulator):
    sources, asked = simulator
    read = Features({"command": torch.tensor([[0.3, 0.4]])}, sources)
    early = read["joint_torque"]
    read.seal()
    assert read["joint_torque"] is early
    assert read["command_speed"].tolist() == [0.5]  # follows from what was measured
    with pytest.raises(KeyError) as late:
        read["foot_speed"]
    assert isinstance(late.value, DuckError)
    assert str(late.value) == (
        "feature 'foot_velocity' was not computed in this step; weigh a term that reads it"
    )
    assert asked == ["joint_torque"]


def test_what_the_environment_gives_goes_before_what_is_derived():
    distance = torch.full((1, 14), 0.5)
    read = Features({"joint_error": torch.zeros(1, 14)}, {"joint_limit_distance": lambda: distance})
    assert read["joint_limit_distance"] is distance


def test_joint_limit_distance_is_that_of_the_nearer_end():
    read = Features({"joint_error": torch.zeros(1, 14, dtype=torch.float64)})
    distance = read["joint_limit_distance"][0].tolist()
    # Left hip yaw in STAND is at 0 in -25 to 30 degrees, the right one mirrored; the neck at 20 in -90 to 60.
    assert [distance[place] for place in (0, 9, 5)] == pytest.approx([0.4363323, 0.4363323, 0.6981317])


def test_no_feature_has_an_unknown_name():
    read = Features({"upright": torch.ones(1)})
    with pytest.raises(KeyError, match="grace"):
        read["grace"]
    assert "grace" not in read.known()


def test_known_features_are_those_given_and_those_that_can_be_computed(simulator):
    known = Features({"upright": torch.ones(1)}, simulator[0]).known()
    assert {"upright", "joint_torque", "progress", "foot_speed"} <= set(known)
    assert "foot_tilt" not in known
    assert known == sorted(known)


def test_the_module_documents_every_feature(walking_features):
    rows = re.findall(r"^\| (\w[\w, ]*) \|", features.__doc__, re.MULTILINE)
    documented = [name for row in rows for name in row.split(", ") if name != "feature"]
    assert sorted(documented) == Features(walking_features).known()
