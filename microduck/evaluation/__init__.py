"""How well a policy does its tasks: held-out episodes, judged by criteria that rows call for."""

from microduck.evaluation.commands import Command, points
from microduck.evaluation.criteria import NOMINAL, ROUGH, Check, Criteria, TaskResult, judge, score
from microduck.evaluation.demands import Demands, demands
from microduck.evaluation.options import EvaluationOptions
from microduck.evaluation.results import Figures
from microduck.evaluation.run import Actor, evaluate
from microduck.evaluation.tally import SETTLE_STEPS
from microduck.evaluation.traces import Recorder, Trace

__all__ = [
    "NOMINAL",
    "ROUGH",
    "SETTLE_STEPS",
    "Actor",
    "Check",
    "Command",
    "Criteria",
    "Demands",
    "EvaluationOptions",
    "Figures",
    "Recorder",
    "TaskResult",
    "Trace",
    "demands",
    "evaluate",
    "judge",
    "points",
    "score",
]
