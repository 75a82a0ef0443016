import pytest
import torch
from tensordict import TensorDict

from hardware.joints import JOINT_NAMES
from microduck.env import MicroDuckEnv
from microduck.learning.symmetry import Mirror
from microduck.tasks import make_task, speed_range_task, stack_tasks


def mirrored_pair(layout):
    """Two environments of one duck each: any motion in the first, its mirror image in the second."""
    row = make_task(
        (0.1, 0.05), (0.1, 0.05), name="a", yaw_rate_interval=(0.3, 0.3), joint_reset_noise_scale=0.2
    )
    other = make_task(
        (0.1, -0.05), (0.1, -0.05), name="b", yaw_rate_interval=(-0.3, -0.3), joint_reset_noise_scale=0.2
    )
    return MicroDuckEnv(tasks=[row], layout=layout, seed=3), MicroDuckEnv(
        tasks=[other], layout=layout, seed=3
    )


@pytest.mark.parametrize("layout", ["state", "sensor"])
def test_the_simulators_mirror_image_has_the_mirrored_observation(layout):
    left, right = mirrored_pair(layout)
    mirror = Mirror(layout, left.tasks)
    seen, image = left.reset(), right.reset()
    # Put the second duck where the first one's image is: y, roll and yaw turned round, legs exchanged.
    qpos, qvel = left.physics.qpos[0].clone(), left.physics.qvel[0].clone()
    qpos[3:7] = torch.tensor([0.98, 0.1, 0.05, 0.15], dtype=torch.float64)
    qpos[3:7] /= qpos[3:7].norm()
    left.physics.qpos[0] = qpos
    qpos[[1, 4, 6]] *= -1
    qvel[[1, 3, 5]] *= -1
    qpos[7:], qvel[6:] = mirror.action(qpos[7:].float()).double(), mirror.action(qvel[6:].float()).double()
    right.physics.qpos[0], right.physics.qvel[0] = qpos, qvel
    action = 0.3 * torch.randn(1, 14, generator=torch.Generator().manual_seed(1))
    seen["action"], image["action"] = action, mirror.action(action)
    for _ in range(3):
        seen, image = left.step(seen)["next"], right.step(image)["next"]
        seen["action"], image["action"] = action, mirror.action(action)
    wanted = mirror.observation(seen["observation"])[0]
    # The clock's image is half a period away, not the same clock; everything else must agree. The two legs
    # and the head's inertia are not perfectly alike, hence the tolerance.
    clock = range(wanted.shape[0] - 17, wanted.shape[0] - 14)
    others = [i for i in range(wanted.shape[0]) if i not in clock]
    assert torch.allclose(wanted[others], image["observation"][0][others], atol=0.05)
    assert wanted[clock[0]] == pytest.approx(-float(seen["observation"][0, clock[0]]))
    assert wanted[clock[2]] == pytest.approx(float(seen["observation"][0, clock[2]]))


def test_mirroring_twice_changes_nothing_and_exchanges_the_legs():
    mirror = Mirror("sensor", stack_tasks(None))
    observation, action = torch.randn(5, 54), torch.zeros(14)
    assert torch.equal(mirror.observation(mirror.observation(observation)), observation)
    action[JOINT_NAMES.index("left_knee")] = 0.4
    action[JOINT_NAMES.index("neck_pitch")] = 0.2
    image = mirror.action(action)
    assert image[JOINT_NAMES.index("right_knee")] == pytest.approx(-0.4)
    assert image[JOINT_NAMES.index("neck_pitch")] == pytest.approx(0.2)
    assert image[JOINT_NAMES.index("left_knee")] == 0


def test_only_tasks_without_a_preferred_side_are_mirrored():
    sidestep = make_task((0.0, 0.1), (0.0, 0.1), name="sidestep")
    mirror = Mirror("sensor", stack_tasks([speed_range_task(), sidestep]))
    rows = TensorDict(
        {
            "observation": torch.ones(1000, 54),
            "action": torch.ones(1000, 14),
            "task_id": torch.tensor([0, 1]).repeat(500).unsqueeze(-1),
        },
        batch_size=[1000],
    )
    torch.manual_seed(0)
    changed = (next(mirror.passes(rows))["observation"] != 1).any(-1)
    assert 200 < int(changed[0::2].sum()) < 300
    assert int(changed[1::2].sum()) == 0
    assert rows["observation"].eq(1).all()
