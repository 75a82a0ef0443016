import pytest
import torch
from tensordict import TensorDict

from hardware import contract
from hardware.joints import JOINT_NAMES
from microduck.env import MicroDuckEnv
from microduck.learning.nine_skills import nine_skills
from microduck.learning.symmetry import Mirror
from microduck.tasks import jump_task, make_task, speed_range_task, stack_tasks, turning_task


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
    observation, action = torch.randn(5, 55), torch.zeros(14)
    assert torch.equal(mirror.observation(mirror.observation(observation)), observation)
    action[JOINT_NAMES.index("left_knee")] = 0.4
    action[JOINT_NAMES.index("neck_pitch")] = 0.2
    image = mirror.action(action)
    assert image[JOINT_NAMES.index("right_knee")] == pytest.approx(-0.4)
    assert image[JOINT_NAMES.index("neck_pitch")] == pytest.approx(0.2)
    assert image[JOINT_NAMES.index("left_knee")] == 0


def rows_of(task_ids):
    """Return a thousand transitions, all ones, on tasks that take turns."""
    observation, action = torch.ones(1000, 55), torch.ones(1000, 14)
    task_id = torch.tensor(task_ids).repeat(1000 // len(task_ids)).unsqueeze(-1)
    batch = {"observation": observation, "action": action, "task_id": task_id}
    return TensorDict(batch, batch_size=[1000])


def test_the_nine_skills_are_mirrored_onto_each_other():
    library = stack_tasks(nine_skills())
    partner = Mirror("sensor", library).partner
    pairs = {name: library.names[int(other)] for name, other in zip(library.names, partner, strict=True)}
    assert pairs == {
        "walk": "walk",
        "stand": "stand",
        "walk_backward": "walk_backward",
        "sidestep_left": "sidestep_right",
        "sidestep_right": "sidestep_left",
        "turn_left": "turn_right",
        "turn_right": "turn_left",
        "hop": "hop",
        "hop_forward": "hop_forward",
    }


def test_a_task_whose_mirror_image_nobody_asks_for_is_never_mirrored():
    sidestep = make_task((0.0, 0.1), (0.0, 0.1), name="sidestep")
    mirror = Mirror("sensor", stack_tasks([speed_range_task(), sidestep]))
    rows = rows_of([0, 1])
    torch.manual_seed(0)
    changed = (next(mirror.passes(rows))["observation"] != 1).any(-1)
    assert 200 < int(changed[0::2].sum()) < 300
    assert int(changed[1::2].sum()) == 0
    assert rows["observation"].eq(1).all()


def test_a_turn_to_one_side_by_its_parameter_is_the_image_of_the_turn_to_the_other():
    library = stack_tasks([turning_task(1.0), turning_task(-1.0), turning_task(0.5)])
    assert Mirror("sensor", library).partner.tolist() == [1, 0, -1]


def test_what_is_shown_mirrored_is_on_the_partners_task():
    library = stack_tasks([make_task((0.0, vy), (0.0, vy), name=f"{vy}") for vy in (0.1, -0.1)])
    torch.manual_seed(0)
    shown = next(Mirror("sensor", library).passes(rows_of([0])))
    mirrored = shown["observation"][:, contract.offsets("sensor")["command"] + 1] == -1
    assert 400 < int(mirrored.sum()) < 600
    assert shown["task_id"].squeeze(-1).tolist() == mirrored.int().tolist()


def test_the_clock_of_a_hop_is_that_of_both_legs_and_has_no_mirror_image():
    library = stack_tasks([jump_task(), speed_range_task()])
    torch.manual_seed(0)
    shown = next(Mirror("sensor", library).passes(rows_of([0, 1])))
    sine = shown["observation"][:, contract.offsets("sensor")["gait_clock"]]
    assert (sine[0::2] == 1).all()
    assert 200 < int((sine[1::2] == -1).sum()) < 300
