"""docs/environment.md says what the code does."""

import dataclasses
import re
from pathlib import Path

import pytest

from microduck import EnvOptions, MicroDuckEnv, PhysicsOptions
from microduck.rewards import REWARD_TERMS

TEXT = (Path(__file__).parents[2] / "docs" / "environment.md").read_text(encoding="utf-8")


def test_the_table_of_terms_is_the_registry():
    rows = re.findall(r"^\| `(\w+)` \| (-?[\d.]+) \| (.*?) \| (.*?) \|$", TEXT, flags=re.MULTILINE)
    told = {
        name: (float(weight), dict(re.findall(r"`(\w+)` ([\d.]+)", params)))
        for name, weight, params, _ in rows
    }
    assert list(told) == list(REWARD_TERMS)
    for name, term in REWARD_TERMS.items():
        weight, params = told[name]
        assert weight == term.weight
        assert {key: float(value) for key, value in params.items()} == pytest.approx(term.params, rel=1e-3)


def test_the_examples_run_one_after_the_other():
    known = {}
    for example in re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL):
        exec(example, known)
    assert known["state"]["task_id"].tolist()[0] in ([0], [1])
    assert known["env"].rollout(2)["observation"].shape == (64, 2, 56)


def test_every_preset_and_option_is_named():
    presets = {name for name in dir(MicroDuckEnv) if name.endswith("_task")}
    options = {field.name for field in dataclasses.fields(EnvOptions)}
    options |= {field.name for field in dataclasses.fields(PhysicsOptions)}
    known = {word for code in re.findall(r"`([^`\n]+)`", TEXT) for word in re.findall(r"\w+", code)}
    assert sorted(presets - known) == []
    # What every environment has needs no words here; the class says it.
    plain = {
        "num_envs",
        "action_scale",
        "max_episode_steps",
        "seed",
        "reset_noise_scale",
    }
    assert sorted(options - known - plain) == []
