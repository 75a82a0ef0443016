"""docs/randomization.md says what the code does."""

import dataclasses
import re
from pathlib import Path

import pytest

from microduck.randomization import Randomization
from microduck.randomization.parameters import BY_NAME

TEXT = (Path(__file__).parents[2] / "docs" / "randomization.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \| [^|]* \| [^|]+ \|$", TEXT, flags=re.MULTILINE))
NOMINAL = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*?) \| [^|]+ \|$", TEXT, flags=re.MULTILINE))


def test_the_table_names_every_field_in_order():
    assert list(ROWS) == [field.name for field in dataclasses.fields(Randomization)]


@pytest.mark.parametrize("name", list(BY_NAME))
def test_the_table_has_the_full_ranges_and_the_nominal_values(name):
    told = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", ROWS[name])]
    milli = 1e-3 if re.search(r"\bm[ms]\b", ROWS[name]) else 1.0
    low, high = getattr(Randomization.full(), name)
    assert (told[0] * milli, told[-1] * milli) == pytest.approx((low, high))
    assert float(NOMINAL[name].split()[0]) == BY_NAME[name].nominal


def test_the_examples_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = {}
    for example in re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL):
        exec(example, known)
    assert known["env"].rollout(2)["observation"].shape == (8, 2, 56)
    assert {path.name for path in tmp_path.iterdir()} == {"ducks.png", "duck.toml"}
