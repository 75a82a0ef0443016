"""A policy evaluated for a report: on the duck as modelled or on a twin, and on ducks that all differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from microduck.evaluation import (
    ROUGH,
    EvaluationOptions,
    Figures,
    Recorder,
    TaskResult,
    Trace,
    evaluate,
)
from microduck.physics.options import PhysicsOptions
from microduck.randomization import Randomization, load_twin
from microduck.report.plan import Plan
from microduck.report.subject import Subject

SERVO = PhysicsOptions(actuator="xl330")
"""How ducks that are not the modelled one are simulated: with the servo as it is."""


@dataclass(frozen=True)
class Study:
    """Everything that was measured of one policy.

    Attributes:
        subject: the policy.
        conditions: which duck the plain results are of, in words.
        plain: a result for each task.
        rough: the same on ducks that all differ and are pushed; None where that was not asked for.
        traces: for each task one episode, of its fastest command, and that command's figures.
    """

    subject: Subject
    conditions: str
    plain: Sequence[TaskResult]
    rough: Sequence[TaskResult] | None
    traces: Mapping[str, tuple[Figures, Trace]]


def conduct(subject: Subject, plan: Plan, notify: Callable[[], None]) -> Study:
    """Run all episodes that a plan asks for.

    Args:
        subject: the policy.
        plan: what to run.
        notify: called after each control step, `plan.steps * plan.rounds` times.

    Raises:
        ConfigError: the twin's file cannot be used.
    """
    recorder = Recorder()
    options, conditions = _plain(_options(subject, plan), plan.twin)

    def step(done: int) -> None:
        notify()

    plain = evaluate(subject.actor, subject.library, options, step, recorder)
    rough = None
    if plan.rough:
        rough = evaluate(subject.actor, subject.library, _rough(options), step)
    return Study(subject, conditions, plain, rough, _fastest(plain, recorder.traces()))


def _options(subject: Subject, plan: Plan) -> EvaluationOptions:
    return EvaluationOptions(
        layout=subject.layout,
        action_scale=subject.action_scale,
        seed=plan.seed,
        episodes=plan.episodes,
        steps=plan.steps,
    )


def _plain(options: EvaluationOptions, twin: Path | None) -> tuple[EvaluationOptions, str]:
    """Return the options for the duck that the plain results are of, and that duck in words."""
    if twin is None:
        return options, "the duck as modelled, position servos"
    ranges = Randomization.of(load_twin(twin))
    return replace(
        options, physics_options=SERVO, randomization=ranges
    ), f"the duck of {twin.name}, XL330 servos"


def _rough(options: EvaluationOptions) -> EvaluationOptions:
    full = Randomization.full()
    return replace(options, physics_options=SERVO, randomization=full, criteria=ROUGH)


def _fastest(results: Sequence[TaskResult], traces: Sequence[Trace]) -> dict[str, tuple[Figures, Trace]]:
    """Return for each task the command that moves it most, straight ahead if it can, and its trace."""
    remaining = iter(traces)
    chosen = {}
    for result in results:
        pairs = [(point, next(remaining)) for point in result.points]
        chosen[result.task] = max(pairs, key=lambda pair: _motion(pair[0]))
    return chosen


def _motion(point: Figures) -> tuple[float, float]:
    turn = abs(point.yaw_rate)
    return point.commanded_speed, -turn if point.commanded_speed else turn
