from dataclasses import replace
from xml.etree import ElementTree

import pytest
import torch

from microduck.learning.config import TrainConfig
from microduck.learning.run_folder import RunFolder
from microduck.learning.train import Trainer
from microduck.rewards import REWARD_TERMS, Features
from microduck.scene import BUILT_IN


@pytest.fixture
def walking_features():
    """One duck walking straight at 0.2 m/s as commanded, left foot swinging at the right height."""
    return {
        "body_velocity": torch.tensor([[0.2, 0.0, 0.0]]),
        "world_velocity": torch.tensor([[0.2, 0.0, 0.0]]),
        "angular_velocity": torch.zeros(1, 3),
        "quaternion": torch.tensor([[1.0, 0.0, 0.0, 0.0]]),
        "projected_gravity": torch.tensor([[0.0, 0.0, -1.0]]),
        "upright": torch.ones(1),
        "position": torch.zeros(1, 2),
        "base_height": torch.tensor([0.12]),
        "standing_height": torch.tensor([0.12]),
        "heading": torch.zeros(1),
        "head_pitch": torch.zeros(1),
        "head_yaw": torch.zeros(1),
        "joint_error": torch.zeros(1, 14),
        "joint_velocity": torch.zeros(1, 14),
        "action": torch.zeros(1, 14),
        "previous_action": torch.zeros(1, 14),
        "earlier_action": torch.zeros(1, 14),
        "contacts": torch.tensor([[False, True]]),
        "previous_contacts": torch.tensor([[False, True]]),
        "foot_positions": torch.tensor([[[0.01, 0.03], [0.01, -0.03]]]),
        "foot_heights": torch.tensor([[0.02, 0.0]]),
        "touchdown_air_time": torch.zeros(1, 2),
        "mean_velocity_error": torch.zeros(1, 2),
        "gait_phase": torch.tensor([torch.pi / 2]),
        "command": torch.tensor([[0.2, 0.0]]),
        "yaw_rate_command": torch.zeros(1),
        "fallen": torch.tensor([False]),
        "foot_velocity": torch.tensor([[[0.4, 0.0], [0.0, 0.0]]]),
        "foot_tilt": torch.zeros(1, 2),
        "joint_torque": torch.zeros(1, 14),
        "self_contacts": torch.zeros(1, dtype=torch.int64),
    }


@pytest.fixture
def params():
    """One row of every reward parameter at its default."""
    return {name: torch.tensor([value]) for name, value in REWARD_TERMS.params.items()}


@pytest.fixture
def value(walking_features, params):
    """Value of a term for the walking duck, with some features or parameters changed."""

    def compute(name, changes):
        new = {key: torch.tensor([change]) for key, change in changes.items()}
        assert new.keys() <= walking_features.keys() | params.keys()
        features = Features({key: new.get(key, old) for key, old in walking_features.items()})
        result = REWARD_TERMS[name].function(
            features, {key: new.get(key, old) for key, old in params.items()}
        )
        assert result.shape == (1,)
        return float(result)

    return compute


@pytest.fixture
def plain_scene(tmp_path):
    """The built-in duck with one box for each sole, in steps of 2 ms: a file that TorchRL loads as well."""
    tree = ElementTree.parse(BUILT_IN)
    tree.find("option").set("timestep", "0.002")
    for body in tree.iter("body"):
        for geom in body.findall("geom"):
            if geom.get("name", "").endswith(("_toe_edge", "_heel_edge")):
                body.remove(geom)
    path = tmp_path / "plain.xml"
    tree.write(path)
    return path


@pytest.fixture
def no_curves(monkeypatch):
    """Leaves out the drawing of the curves, which takes longer than a small training."""
    monkeypatch.setattr("microduck.learning.journal.plot_log", lambda *arguments: None)


@pytest.fixture(scope="session")
def small():
    """A training of two updates of 256 transitions, without checks of the tasks."""
    sizes = {"num_envs": 32, "steps": 8, "minibatches": 2, "threads": 1}
    return TrainConfig(minutes=50, transitions=512, evaluate_every_minutes=0, **sizes)


@pytest.fixture
def train(tmp_path, small):
    """Trains a new run, in a folder of its own by default, and returns the trainer and its log."""

    def run(folder=tmp_path / "run", **changes):
        rows = []
        trainer = Trainer.start(RunFolder(folder), replace(small, **changes))
        trainer.train(rows.append)
        return trainer, rows

    return run
