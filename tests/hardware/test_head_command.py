from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from hardware import contract, joints

MakeArray = Callable[[Any], Any]
Close = Callable[..., bool]
HEAD_PLACES = [5, 6, 7, 8]
"""Places of neck_pitch, head_pitch, head_yaw and head_roll in the joint order."""


def test_a_head_offset_moves_at_two_radians_a_second(array: MakeArray, close: Close) -> None:
    head = contract.HeadMap(array([0.0]))
    now = head.step(array([0.0, 0.0, 0.0, 0.1]), array([-0.3, 0.01, 1.0, -0.3]))
    assert close(now, [-0.04, 0.01, 0.04, 0.06])  # 2 rad/s for 20 ms


def test_a_head_offset_stops_at_its_ends(array: MakeArray, close: Close) -> None:
    head, up, down = contract.HeadMap(array([0.0])), array([0.0] * 4), array([0.0] * 4)
    for _ in range(60):
        up, down = head.step(up, array([9.0] * 4)), head.step(down, array([-9.0] * 4))
    assert close(up, [0.1, 0.3, 1.0, 0.3])
    assert close(down, [-0.3, -0.3, -1.0, -0.3])


def test_the_heads_of_many_ducks_move_apart(array: MakeArray, close: Close) -> None:
    now = contract.HeadMap(array([0.0])).step(array([[0.0] * 4, [0.1] * 4]), array([[0.0] * 4, [0.3] * 4]))
    assert close(now, [[0.0] * 4, [0.1, 0.14, 0.14, 0.14]])  # the neck's end is 0.1


def test_head_offsets_add_to_the_heads_joints_only(array: MakeArray, close: Close) -> None:
    wanted = [0.0] * 14
    wanted[5:9] = [0.1, 0.2, 0.3, 0.4]
    head = contract.HeadMap(array([0.0]))
    assert close(head.pose(array([0.1, 0.2, 0.3, 0.4])), wanted)
    assert close(head.pose(array([[0.1, 0.2, 0.3, 0.4]] * 3)), [wanted] * 3)
    assert [joints.JOINT_NAMES.index(name) for name in contract.HEAD_NAMES] == HEAD_PLACES


def test_what_is_added_to_a_target_is_taken_off_a_measurement(array: MakeArray, close: Close) -> None:
    pose = contract.HeadMap(array([0.0])).pose(array([-0.2, 0.3, 1.0, -0.3]))
    policy = contract.ActionMap(array([0.0]), 1.0)
    reached = policy.joint_targets(array([0.1] * 14)) + pose
    assert close(policy.joint_error(reached - pose), [0.1] * 14, 1e-12)


def test_a_head_offset_keeps_single_precision() -> None:
    for head in (np.zeros((2, 4), np.float32), torch.zeros((2, 4))):
        mapped = contract.HeadMap(head)
        assert mapped.step(head, head + 1).dtype == head.dtype
        assert mapped.pose(head).dtype == head.dtype


@pytest.mark.parametrize("ends", [contract.HEAD_LOW, contract.HEAD_HIGH])
def test_a_head_that_stands_stays_in_its_joints_ranges(ends: tuple[float, ...]) -> None:
    pose = joints.STAND + contract.HeadMap(np.zeros(1)).pose(np.array(ends))
    assert (pose >= joints.LOW).all() and (pose <= joints.HIGH).all()


def test_head_offsets_are_no_part_of_what_a_policy_was_trained_under() -> None:
    # A bundle from before there were head offsets must still load.
    assert not [key for key in contract.describe("sensor", 1.0) if "head_" in key]
