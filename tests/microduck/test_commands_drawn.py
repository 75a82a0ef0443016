"""Commands that are drawn as exactly zero on purpose."""

import pytest

from hardware.errors import TaskError
from microduck.env import MicroDuckEnv
from microduck.tasks import make_task


def test_planar_command_and_yaw_rate_are_zero_as_often_as_the_row_says():
    row = make_task(
        (0.0, -0.1), (0.3, 0.1), name="a", yaw_rate_interval=(-1, 1), command_zero_fraction=(0.25, 0.5)
    )
    state = MicroDuckEnv(tasks=[row], num_envs=4000, seed=1).reset()
    still = (state["command"] == 0).all(-1)
    assert float(still.float().mean()) == pytest.approx(0.25, abs=0.03)
    assert float((state["yaw_rate_command"] == 0).float().mean()) == pytest.approx(0.5, abs=0.03)
    assert bool((state["command"][~still] != 0).all())  # vx and vy are zero together or not at all


def test_rows_without_it_never_draw_an_exact_zero():
    row = make_task((0.0, -0.1), (0.3, 0.1), name="a")
    state = MicroDuckEnv(tasks=[row], num_envs=1000, seed=1).reset()
    assert bool((state["command"] != 0).all())


@pytest.mark.parametrize(("fraction", "box"), [((0.1, 0.0), (0.1, 0.3)), ((1.5, 0.0), (0.0, 0.3))])
def test_a_zero_that_the_box_does_not_hold_or_a_share_above_one_is_refused(fraction, box):
    with pytest.raises(TaskError, match="command_zero_fraction of task 'a' is"):
        make_task((box[0], 0.0), (box[1], 0.0), name="a", command_zero_fraction=fraction)
