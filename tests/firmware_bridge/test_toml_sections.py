"""Strict TOML files, with sections made for these tests."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.toml_sections import (
    MAX_FILE_BYTES,
    attribute_texts,
    parse_sections,
    read_sections,
    render,
)
from hardware.errors import ConfigError


@dataclass(frozen=True)
class Engine:
    """What drives.

    Attributes:
        power: of the engine [W], which is
            written on its plate.
        gears: how many.
        fuel: what it burns.
        on: whether it runs.
        name: what it is called.
        log: where it writes.
        ratios: of the gears [1].
        sides: left and right.
    """

    power: float = 1.5
    gears: int = 4
    fuel: Literal["oil", "gas"] = "oil"
    on: bool = False
    name: str = "e"
    log: Path | None = None
    ratios: tuple[float, ...] = (1.0, 2.0)
    sides: tuple[str, str] = ("l", "r")

    def __post_init__(self) -> None:
        if not 0 < self.power <= 9:
            raise ConfigError(f"power is {self.power:g} W; it must be in (0, 9]")


@dataclass(frozen=True)
class Wheels:
    """What rolls.

    Attributes:
        count: how many.
    """

    count: int = 4


@dataclass(frozen=True)
class Car:
    """A car."""

    engine: Engine = field(default_factory=Engine)
    wheels: Wheels = field(default_factory=Wheels)


def parse(text: str) -> Car:
    return parse_sections(text.encode(), "car.toml", Car)


def test_what_a_file_leaves_out_has_its_default() -> None:
    car = parse("[wheels]\ncount = 3\n")
    assert car.wheels.count == 3
    assert (car.engine.power, car.engine.log, car.engine.sides) == (1.5, None, ("l", "r"))


def test_every_type_of_value_is_taken() -> None:
    lines = (
        *("[engine]", "power = 2", "gears = 5", 'fuel = "gas"', "on = true", 'name = "x"'),
        *('log = "a/b"', "ratios = [1, 2.5, 3]", 'sides = ["a", "b"]'),
    )
    engine = parse("\n".join(lines)).engine
    assert engine == Engine(2.0, 5, "gas", True, "x", Path("a/b"), (1.0, 2.5, 3.0), ("a", "b"))
    assert isinstance(engine.power, float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "\n[engine]\npowr = 2",
            "line 3: unknown key 'powr' in [engine]; valid keys are power, gears, fuel,",
        ),
        ("[motor]\npower = 1", "line 1: unknown section [motor]; valid ones are engine, wheels"),
        ("power = 1", "line 1: unknown section [power]; valid ones are engine, wheels"),
        ("[wheels]\ncount = 1\n[engine]\ncount = 2", "line 4: unknown key 'count' in [engine]"),
        ("engine = 4", "line 1: engine must be a section; write [engine] on a line of its own"),
        ("[[engine]]\ngears = 1", "line 1: engine must be a section"),
        ('[engine]\n\npower = "big"', 'line 3: [engine] power = "big"; it must be a number'),
        ("[engine]\npower = true", "line 2: [engine] power = true; it must be a number"),
        ("[engine]\npower = nan", "line 2: [engine] power = nan; it must be a number"),
        ("[engine]\npower = inf", "line 2: [engine] power = inf; it must be a number"),
        ("[engine]\npower = 1979-05-27", "line 2: [engine] power = datetime.date(1979, 5, 27); it must be"),
        (f"[engine]\npower = {'9' * 400}", "line 2: [engine] power = 999"),
        ("[engine]\ngears = 4.0", "line 2: [engine] gears = 4.0; it must be a whole number"),
        ("[engine]\ngears = true", "line 2: [engine] gears = true; it must be a whole number"),
        ('[engine]\nfuel = "wood"', 'line 2: [engine] fuel = "wood"; it must be one of "oil", "gas"'),
        ("[engine]\non = 1", "line 2: [engine] on = 1; it must be true or false"),
        ("[engine]\nname = 7", "line 2: [engine] name = 7; it must be text in quotes"),
        ("[engine]\nlog = false", "line 2: [engine] log = false; it must be a path in quotes"),
        (
            '[engine]\nratios = [1, "a"]',
            "line 2: [engine] ratios = [1, 'a']; it must be a list, each a number",
        ),
        ('[engine]\nsides = ["a"]', "line 2: [engine] sides = ['a']; it must be a list, 2 values, each text"),
        ("[engine]\nsides = 1", "line 2: [engine] sides = 1; it must be a list"),
        ("[engine]\ngears = {a = 1}", "line 2: [engine] gears = {'a': 1}; it must be a whole number"),
        ("[engine]\ngears = 2\npower = 12 # W", "line 3: [engine] power is 12 W; it must be in (0, 9]"),
        ("[engine]\ngears = 2\ngears = 3", "line 3: gears is given a second time; keep one of the two"),
        ("[engine]\n[wheels]\n[engine]", "line 3: Cannot declare ('engine',) twice"),
        ("[engine]\ngears = ", "line 2: Invalid value"),
        ("[engine\ngears = 1", "line 1: Expected ']'"),
        ("a = [1", "line 1: Unclosed array"),
        ("a = " + "[" * 20_000, "car.toml is no TOML file"),
        ("[engine]\ngears = " + "1" * 5_000, "car.toml is no TOML file"),
        ("engine.gears = 4.5", "line 1: [engine] gears = 4.5"),
        ("\nengine = { gears = 4.5 }", "line 2: [engine] gears = 4.5"),
        ('[ "engine" ]\n "gears" = 4.5', "line 2: [engine] gears = 4.5"),
        ('[wheels]\ncount = 1 # gears = 2\n[engine]\n# gears = 3\ngears = "a"', "line 5: [engine] gears"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line_its_value_and_the_valid_ones(
    text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text)
    assert str(refused.value).replace("car.toml, ", "").startswith(message)
    assert len(str(refused.value)) < 300


def test_bytes_that_are_no_text_are_refused_with_their_line() -> None:
    with pytest.raises(ConfigError, match=r"car.toml, line 2: a byte that is not UTF-8"):
        parse_sections(b"[engine]\nname = '\xff'", "car.toml", Car)


def test_only_files_of_a_bounded_size_are_read(tmp_path: Path) -> None:
    (tmp_path / "big.toml").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    (tmp_path / "full.toml").write_bytes(b"#" * MAX_FILE_BYTES)
    assert read_sections(tmp_path / "full.toml", Car) == Car()
    for name, message in (("big.toml", "larger than"), ("none.toml", "not a file"), ("", "not a file")):
        with pytest.raises(ConfigError, match=message):
            read_sections(tmp_path / name, Car)


def test_a_rendered_file_says_what_each_key_means() -> None:
    text = render(Car())
    assert text.startswith(
        "# A car.\n\n# What drives.\n[engine]\n# of the engine [W], which is written on its plate."
    )
    assert "# how many.\ngears = 4\n" in text and "# where it writes.\n# log is not set.\n" in text
    assert parse(text) == Car()


def test_a_file_can_be_rendered_without_comments() -> None:
    text = render(Car(Engine(log=Path("x"))), comments=False)
    assert "#" not in text and 'log = "x"\n' in text and text.count("\n\n") == 1
    assert tomllib.loads(text)["engine"]["ratios"] == [1.0, 2.0]


def test_the_meanings_come_from_the_docstring() -> None:
    assert attribute_texts(Wheels) == {"count": "how many."}
    assert attribute_texts(Car) == {}


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(
    power=st.floats(1e-300, 9),
    gears=st.integers(-(2**63), 2**63 - 1),
    name=words,
    ratios=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4),
    comments=st.booleans(),
)
def test_what_is_rendered_reads_back_equal(
    power: float, gears: int, name: str, ratios: list[float], comments: bool
) -> None:
    car = Car(Engine(power=power, gears=gears, name=name, ratios=tuple(ratios)))
    assert parse(render(car, comments)) == car


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_bytes_cause_another_error(content: bytes) -> None:
    try:
        result: Any = parse_sections(content, "car.toml", Car)
    except ConfigError:
        return
    assert isinstance(result, Car)
