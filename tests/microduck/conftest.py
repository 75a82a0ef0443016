import pytest
import torch

from microduck.rewards import reward_params


@pytest.fixture
def walking_features():
    """One duck walking straight at 0.2 m/s as commanded, left foot swinging at the right height."""
    return {
        "body_velocity": torch.tensor([[0.2, 0.0, 0.0]]),
        "world_velocity": torch.tensor([[0.2, 0.0, 0.0]]),
        "angular_velocity": torch.zeros(1, 3),
        "upright": torch.ones(1),
        "base_height": torch.tensor([0.12]),
        "standing_height": torch.tensor([0.12]),
        "heading": torch.zeros(1),
        "head_pitch": torch.zeros(1),
        "head_yaw": torch.zeros(1),
        "joint_error": torch.zeros(1, 14),
        "joint_velocity": torch.zeros(1, 14),
        "action": torch.zeros(1, 14),
        "previous_action": torch.zeros(1, 14),
        "contacts": torch.tensor([[False, True]]),
        "foot_heights": torch.tensor([[0.02, 0.0]]),
        "touchdown_air_time": torch.zeros(1, 2),
        "gait_phase": torch.tensor([torch.pi / 2]),
        "command": torch.tensor([[0.2, 0.0]]),
        "yaw_rate_command": torch.zeros(1),
        "fallen": torch.tensor([False]),
    }


@pytest.fixture
def params():
    return {name: torch.tensor([value]) for name, value in reward_params().items()}
