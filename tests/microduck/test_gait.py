import pytest
import torch

from hardware.errors import ContractError
from hardware.joints import JOINT_NAMES
from microduck.env import MicroDuckEnv
from microduck.gait import TORCHRL_GAINS, MicroDuckGait
from microduck.gait_metrics import gait_metrics
from microduck.learning.symmetry import Mirror
from microduck.tasks import stack_tasks


def observation(gravity_x=0.0, pitch_rate=0.0, vx=0.03, clock=(0.6, 0.8, 1.0)):
    values = torch.zeros(56)
    values[0], values[4], values[9] = gravity_x, pitch_rate, vx
    values[39:42] = torch.tensor(clock)
    return values


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(
            # pitch asin(0.05) = 0.0500209; half of the ramp, so wave 0.3 and quadrature 0.4;
            # hips -9.9495 * 0.0500209 - 0.6119 * 0.2 = -0.6200625, ankles 0.6705593,
            # sway 0.3 cos 0.1624 - 0.4 sin 0.1624 = 0.2313778
            observation(0.05, 0.2, clock=(0.6, 0.8, 0.5)),
            {
                "left_hip_roll": 0.2217525,
                "left_hip_pitch": 0.3203625,
                "left_knee": 0.27291,
                "left_ankle": 0.6610493,
                "right_hip_roll": 0.2217525,
                "right_hip_pitch": -0.9197625,
                "right_ankle": -0.6705593,
            },
            id="forward, left leg swinging",
        ),
        pytest.param(
            # pitch 0.3046927 asks for -3.03 of the hips and 3.35 of the ankles: limits -0.95 and 1;
            # backward, so wave -0.6 and quadrature -0.8; sway -0.6 cos 0.1624 + 0.8 sin 0.1624 = -0.4627556
            observation(0.3, 0.0, vx=-0.1),
            {
                "left_hip_roll": -0.4435050,
                "left_hip_pitch": 1.0,
                "left_ankle": 1.0,
                "right_hip_roll": -0.4435050,
                "right_hip_pitch": -0.3506,
                "right_knee": -0.54582,
                "right_ankle": -0.98098,
            },
            id="backward, right leg swinging, leaning far",
        ),
        pytest.param(
            # nothing but the balance: -0.6119 * -0.5 and 0.6033 * -0.5
            observation(0.0, -0.5, vx=0.0),
            {
                "left_hip_pitch": -0.30595,
                "left_ankle": -0.30165,
                "right_hip_pitch": 0.30595,
                "right_ankle": 0.30165,
            },
            id="no command",
        ),
    ],
)
def test_actions_with_the_gains_of_torchrl_worked_out_by_hand(seen, expected):
    actions = MicroDuckGait(TORCHRL_GAINS).actions(seen)
    wanted = [expected.get(name, 0.0) for name in JOINT_NAMES]
    assert actions.tolist() == pytest.approx(wanted, abs=1e-6)


def test_a_mirrored_observation_gives_the_mirrored_action():
    seen = torch.randn(50, 56, generator=torch.Generator().manual_seed(0)) * 0.3
    mirror, gait = Mirror("state", stack_tasks()), MicroDuckGait()
    assert gait.actions(seen).abs().amax() > 0.5
    assert torch.allclose(
        gait.actions(mirror.observation(seen)), mirror.action(gait.actions(seen)), atol=1e-6
    )


def test_any_batch_shape_is_taken_row_by_row():
    seen = torch.randn(3, 2, 56, generator=torch.Generator().manual_seed(0)) * 0.3
    gait = MicroDuckGait()
    rows = torch.stack([gait.actions(row) for row in seen.reshape(6, 56)])
    assert torch.equal(gait.actions(seen), rows.reshape(3, 2, 14))


def test_another_layout_is_refused():
    with pytest.raises(ContractError, match=r"54 wide.*'state', which is 56 wide; make the environment"):
        MicroDuckGait().actions(torch.zeros(2, 54))


@pytest.mark.parametrize("seed", [0, 1])
def test_it_walks_the_built_in_duck_for_ten_seconds(seed):
    env = MicroDuckEnv(tasks=MicroDuckEnv.tracking_task(0.03), diagnostics=True, seed=seed)
    metrics = gait_metrics(env.rollout(500, MicroDuckGait()))
    assert metrics["walking"]
    assert metrics["episode_length"] == 500
    assert metrics["forward_speed"] > 0.05
    # The clock lifts each foot 1.8913 times a second.
    assert metrics["left_swing_phases"] == pytest.approx(18.9, abs=2)
    assert metrics["right_swing_phases"] == pytest.approx(18.9, abs=2)


def test_without_a_command_it_stands_upright_where_it_is():
    env = MicroDuckEnv(tasks=MicroDuckEnv.standing_task(), diagnostics=True, seed=0)
    metrics = gait_metrics(env.rollout(200, MicroDuckGait()))
    assert metrics["survived"]
    assert not metrics["walking"]
    assert metrics["max_abs_pitch"] < 0.05
    assert abs(metrics["forward_speed"]) < 0.005
