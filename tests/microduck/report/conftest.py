from dataclasses import replace

import numpy as np
import pytest
import torch

from hardware.joints import NUM_JOINTS, STAND
from microduck.evaluation import Demands, Figures, Trace, judge
from microduck.report.document import Report
from microduck.report.plan import Plan
from microduck.report.provenance import provenance
from microduck.report.study import Study
from microduck.report.subject import Subject
from microduck.tasks import stack_tasks, standing_task

WALK = Figures(
    command=(0.2, 0.0, 0.0),
    yaw_rate=0.0,
    episodes=4,
    survival=1.0,
    speed=0.2,
    speed_std=0.01,
    speed_error=0.01,
    speed_error_worst=0.02,
    across=0.01,
    turn_rate=0.0,
    turn_rate_std=0.01,
    turn_rate_error=0.01,
    heading_drift_p95=0.1,
    planar_drift_p95=2.0,
    airborne=0.0,
    double_support=0.1,
    flights_per_s=0.0,
    apex=None,
    clearance=None,
    foot_height=0.02,
    foot_slip=0.01,
    head_pitch=0.05,
    power=2.0,
    cost_of_transport=1.4,
    action_rate=0.3,
    torque_p95=(0.3,) * NUM_JOINTS,
    torque_max=(0.6,) * NUM_JOINTS,
    hard=0.0,
)
"""A duck that walks at 0.2 m/s as it should."""


@pytest.fixture
def walk():
    return WALK


@pytest.fixture
def result():
    """Makes the result of a task at one command, a walk at 0.2 m/s unless changed."""

    def make(task="walk", demanded=Demands(), **changes):  # noqa: B008  (frozen)
        return judge(task, demanded, (replace(WALK, **changes),))

    return make


@pytest.fixture
def trace():
    """Three seconds of STAND with feet that step in turn, twice a second."""
    steps = np.arange(150)
    qpos = np.tile(np.concatenate([[0, 0, 0.12, 1, 0, 0, 0], STAND]), (150, 1))
    left = (steps % 25) < 15
    return Trace(qpos, np.stack([left, ~left], axis=1), np.sin(steps))


@pytest.fixture
def study(trace):
    """Makes the study of a policy from the results of its tasks."""

    def make(*results, rough=None, name="runs/one"):
        subject = Subject(
            name=name,
            kind="run",
            actor=lambda observation, task_id: torch.zeros(len(observation), NUM_JOINTS),
            library=stack_tasks([standing_task()]),
            layout="sensor",
            action_scale=1.0,
            digest="ab" * 32,
            training={"transitions": 6_000_000},
        )
        traces = {each.task: (each.points[0], trace) for each in results}
        return Study(subject, "the duck as modelled", results, rough, traces)

    return make


@pytest.fixture
def report(study):
    """Makes the report of one study, or of two side by side."""

    def make(one, other=None):
        return Report(one, other, provenance(Plan(episodes=4), ["microduck", "eval", "runs/one"], 12.3))

    return make
