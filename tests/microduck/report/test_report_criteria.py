"""What is asked of a task, and whether a result meets it."""

import dataclasses
from math import radians

import pytest

from microduck.evaluation import NOMINAL, ROUGH, Check, Demands, TaskResult, demands, judge, score
from microduck.tasks import jump_task, speed_range_task, stack_tasks, standing_task, turning_task


@pytest.fixture
def good(walk):
    """Figures of a duck that does all that could be asked, at no command."""
    return dataclasses.replace(
        walk, command=(0.0, 0.0, 0.0), planar_drift_p95=0.01, airborne=0.3, apex=0.03, speed_error=0.0
    )


def test_what_a_row_asks_for_follows_from_its_data_whatever_its_name():
    rows = [
        standing_task(name="a"),
        standing_task(name="b", reward_weights={"swing_height": 2.0}),
        speed_range_task(0.0, 0.3, name="standing"),
        turning_task(-1.0, name="c"),
        turning_task(1.0, name="d", yaw_rate_interval=(0.5, 1.0)),
        jump_task(name="e"),
        jump_task(0.2, name="f"),
    ]
    assert demands(stack_tasks(rows)) == [
        Demands(stands=True),
        Demands(),
        Demands(),
        Demands(turn_rate=-1.0),
        Demands(),
        Demands(hops=True),
        Demands(hops=True),
    ]


def names(point, demanded=Demands(), criteria=NOMINAL):  # noqa: B008  (frozen)
    return [check.criterion for check in judge("x", demanded, (point,), criteria).checks]


def test_criteria_follow_from_the_command_and_the_rows_data(good):
    def told(*command):
        return dataclasses.replace(good, command=command, yaw_rate=command[2])

    assert names(good, Demands(stands=True)) == ["survival", "heading", "standing"]
    assert names(good) == ["survival", "heading"]  # steps in place
    assert names(told(0.05, 0.0, 0.0)) == ["survival", "heading"]  # too slow to judge
    assert names(told(-0.1, 0.0, 0.2)) == ["survival", "speed", "heading"]
    assert names(told(0.0, 0.15, -0.3)) == ["survival", "speed", "turn rate"]
    turns = dataclasses.replace(good, yaw_rate=-1.0)
    assert names(turns, Demands(turn_rate=-1.0)) == ["survival", "turn rate"]
    assert names(good, Demands(hops=True)) == ["survival", "heading", "airborne", "apex"]
    assert names(told(0.2, 0.0, 0.5), Demands(hops=True), ROUGH) == ["survival", "speed"]


@pytest.mark.parametrize(
    ("criterion", "changes", "said"),
    [
        ("survival", {"survival": 63 / 64}, "survival 98.4 % at 0.2 0 0, at least 100 %"),
        ("speed", {"speed_error": 0.031}, "speed off by 0.031 m/s at 0.2 0 0, at most 0.03 m/s"),
        (
            "heading",
            {"heading_drift_p95": radians(10.1)},
            "heading drift 10.1 deg at 0.2 0 0, at most 10 deg",
        ),
        ("standing", {"planar_drift_p95": 0.021}, "drift 2.1 cm at 0.2 0 0, at most 2 cm"),
        ("airborne", {"airborne": 0.14}, "airborne 14 % of the time at 0.2 0 0, at least 15 % of the time"),
        ("apex", {"apex": 0.019}, "hop height 1.9 cm at 0.2 0 0, at least 2 cm"),
        ("apex", {"apex": None}, "hop height 0 cm at 0.2 0 0, at least 2 cm"),
    ],
)
def test_each_criterion_can_fail_alone_and_says_by_how_much(good, criterion, changes, said):
    demanded = Demands(stands=True, hops=True)
    point = dataclasses.replace(good, command=(0.2, 0.0, 0.0))
    assert judge("x", demanded, (point,)).met and score(judge("x", demanded, (point,))) == 1.0
    result = judge("x", demanded, (dataclasses.replace(point, **changes),))
    assert not result.met
    assert [(check.criterion, str(check)) for check in result.unmet] == [(criterion, said)]
    assert 0 <= score(result) < 1


def test_a_turn_rate_must_be_met_within_fifteen_percent(good):
    near, far = (dataclasses.replace(good, yaw_rate=-1.0, turn_rate_error=error) for error in (0.15, 0.1501))
    assert judge("x", Demands(), (near,)).met
    assert str(judge("x", Demands(), (far,)).unmet[0]).startswith("turn rate off by 0.15 rad/s")


def test_ducks_that_differ_need_98_of_100_and_four_centimetres_a_second(good):
    point = dataclasses.replace(good, command=(0.1, 0.0, 0.0), survival=0.98, speed_error=0.04)
    assert judge("x", Demands(), (point,), ROUGH).met
    for changes in ({"survival": 0.97}, {"speed_error": 0.041}):
        assert not judge("x", Demands(), (dataclasses.replace(point, **changes),), ROUGH).met


def test_the_score_is_the_product_over_criteria_of_mean_nearness():
    at = (0.2, 0.0, 0.0)
    checks = (
        Check("survival", at, 0.5, 1.0, at_least=True),
        Check("survival", at, 1.0, 1.0, at_least=True),
        Check("speed", at, 0.06, 0.03),
        Check("heading", at, 0.1, 0.17),
    )
    # survival (0.5 + 1) / 2, speed 0.03 / 0.06, heading kept
    assert score(TaskResult("x", (), checks)) == pytest.approx(0.75 * 0.5)
    assert score(TaskResult("x", (), (Check("apex", at, -0.01, 0.02, at_least=True),))) == 0.0


def test_of_a_criterion_the_command_that_fails_by_most_is_named():
    checks = tuple(Check("speed", (v, 0.0, 0.0), v, 0.03) for v in (0.02, 0.1, 0.3, 0.2))
    assert [check.command[0] for check in TaskResult("x", (), checks).unmet] == [0.3]
