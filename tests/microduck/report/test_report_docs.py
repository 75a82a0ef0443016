"""docs/evaluation.md says what the code does."""

import re
from dataclasses import fields
from pathlib import Path

from microduck.evaluation import Figures
from microduck.report.plan import Plan

TEXT = (Path(__file__).parents[3] / "docs" / "evaluation.md").read_text(encoding="utf-8")


def test_the_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    exec(example, {})


def test_every_figure_and_option_is_named():
    known = set(re.findall(r"`(?:--)?(?:no-)?(\w+)`", TEXT))
    assert {field.name for field in fields(Figures)} - known == {"command", "episodes"} - known
    assert {field.name for field in fields(Plan)} <= known


def test_the_options_have_the_defaults_that_are_told():
    told = dict(re.findall(r"^\| `--(\w+)` \| (\d+) \|", TEXT, flags=re.MULTILINE))
    assert {name: float(value) for name, value in told.items()} == {
        "episodes": Plan().episodes,
        "seconds": Plan().seconds,
        "seed": Plan().seed,
    }
