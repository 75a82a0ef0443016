from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import pytest

from firmware_bridge.commands.keyboard import KeyboardCommands
from firmware_bridge.commands.keys import KeyStream, split_keys
from firmware_bridge.commands.request import Event
from firmware_bridge.skills.manifest import Skill

ASKED, ANSWER = b"\x1b[5n", b"\x1b[0n"
UP, DOWN, LEFT, RIGHT = b"\x1b[A", b"\x1b[B", b"\x1b[D", b"\x1b[C"


class FakeTerminal:
    """A terminal whose user the test plays; `answers` says whether it tells that it is there."""

    def __init__(self, answers: bool) -> None:
        self.typed: list[bytes | None] = []
        self.written = b""
        self.answers = answers
        self.closed = False

    def read(self) -> bytes | None:
        return self.typed.pop(0) if self.typed else b""

    def write(self, data: bytes) -> None:
        self.written += data
        if self.answers and data == ASKED:
            self.typed.append(ANSWER)

    def close(self) -> None:
        self.closed = True


class Driver:
    """A person at a keyboard, driving the skill "trot"."""

    def __init__(self, skills: Mapping[str, Skill], clock: Any, answers: bool = True) -> None:
        self.terminal, self.clock, self.said = FakeTerminal(answers), clock, list[str]()
        self.source = KeyboardCommands(
            skills, "trot", self.said.append, terminal=self.terminal, now=self.clock
        )
        self.wait(0.1)

    def press(self, *typed: bytes) -> list[float]:
        """Type, and return the command of the next tick."""
        self.terminal.typed += typed
        for _ in range(len(typed) + 1):
            self.request = self.source.latest()
        return self.request.command.tolist()

    def wait(self, seconds: float) -> None:
        """Let ticks go by."""
        for _ in range(round(seconds / 0.02)):
            self.clock.now_s += 0.02
            self.request = self.source.latest()


@pytest.fixture
def driver(skills: dict[str, Skill], clock: Any) -> Driver:
    return Driver(skills, clock)


def test_the_duck_starts_limp_and_nothing_is_asked_for(driver: Driver) -> None:
    assert driver.source.interactive
    assert (driver.request.skill, driver.request.command.tolist(), driver.request.event) == (
        "trot",
        [0, 0, 0],
        None,
    )


@pytest.mark.parametrize(
    ("key", "command"),
    [
        (b"w", [0.05, 0, 0]),
        (b"s", [-0.05, 0, 0]),
        (b"a", [0, 0.05, 0]),
        (b"d", [0, -0.05, 0]),
        (UP, [0.05, 0, 0]),
        (DOWN, [-0.05, 0, 0]),
        (LEFT, [0, 0, 0.2]),
        (RIGHT, [0, 0, -0.2]),
        (b"\x1bOA", [0.05, 0, 0]),
        (b"W", [0.05, 0, 0]),
    ],
)
def test_a_key_changes_the_command_by_a_step(driver: Driver, key: bytes, command: list[float]) -> None:
    assert driver.press(key) == command


def test_a_command_stays_until_the_next_key_and_does_not_age(driver: Driver) -> None:
    driver.press(b"w", b"w")
    driver.wait(60.0)
    assert driver.request.command.tolist() == [0.1, 0, 0]
    assert driver.request.age_s < 0.5


def test_there_and_back_is_exactly_zero(driver: Driver) -> None:
    assert driver.press(b"wwwsss", LEFT * 3 + RIGHT * 3) == [0.0, 0.0, 0.0]


def test_a_command_never_leaves_the_skills_box(driver: Driver) -> None:
    assert driver.press(b"w" * 50, b"d" * 50) == [0.6, -0.2, 0.0]


def test_space_halts(driver: Driver) -> None:
    assert driver.press(b"www", LEFT, b" ") == [0, 0, 0]


def test_digits_choose_skills_and_the_command_moves_into_the_new_box(driver: Driver) -> None:
    driver.press(b"wwwwwwww", b"1")
    assert (driver.request.skill, driver.request.command.tolist()) == ("walk", [0.3, 0, 0])
    driver.press(b"2")
    assert (driver.request.skill, driver.request.command.tolist()) == ("stand", [0, 0, 0])


def test_a_key_without_a_meaning_is_counted_and_changes_nothing(driver: Driver) -> None:
    assert driver.press(b"w", b"4", b"%", b"\x00", b"\x1b[15~", b"\xff") == [0.05, 0, 0]
    assert (driver.request.skill, driver.source.refused) == ("trot", 5)


def test_a_sequence_that_breaks_off_swallows_no_later_key(driver: Driver) -> None:
    driver.terminal.typed = [b"\x1b[1;2;3"]
    driver.source.latest()
    driver.clock.now_s += 0.2
    driver.terminal.typed = [b"x"]
    assert driver.source.latest().event is Event.LIMP


def test_a_key_that_would_leave_the_skills_box_is_answered(driver: Driver) -> None:
    driver.press(b"1", b"d")
    assert driver.request.command.tolist() == [0, 0, 0]
    assert driver.said == ["walk goes no further that way; ? tells the other skills"]


def test_a_key_without_a_meaning_is_answered_but_never_more_than_once_a_second(driver: Driver) -> None:
    driver.press(b"%")
    assert driver.said == ["the key '%' does nothing; ? tells what keys do"]
    driver.press(b"\xff" * 50)
    driver.wait(0.9)
    driver.press(b"%")
    assert len(driver.said) == 1
    driver.wait(0.2)
    driver.press(b"\x1b[15~")
    assert driver.said[1:] == [r"the key '\x1b[15~' does nothing; ? tells what keys do"]


@pytest.mark.parametrize(
    ("key", "event"),
    [
        (b"\r", Event.START),
        (b"\n", Event.START),
        (b"c", Event.SIT),
        (b"x", Event.LIMP),
        (b"q", Event.QUIT),
        (b"X", Event.LIMP),
    ],
)
def test_a_change_of_mode_is_asked_for_once_and_halts(driver: Driver, key: bytes, event: Event) -> None:
    driver.press(b"www")
    driver.terminal.typed.append(key)
    request = driver.source.latest()
    assert (request.event, request.command.tolist()) == (event, [0, 0, 0])
    assert driver.source.latest().event is None


def test_a_question_mark_shows_what_the_keys_do(driver: Driver) -> None:
    driver.press(b"?")
    assert len(driver.said) == 1
    for part in ("1 walk", "2 stand", "3 trot", "x limp", "q quit"):
        assert part in driver.said[0]


@pytest.mark.parametrize("end", [None, b""])
def test_a_terminal_that_hangs_up_leaves_no_live_command(driver: Driver, end: bytes | None) -> None:
    driver.press(b"www")
    driver.terminal.answers = False
    driver.terminal.typed = [end] * 60
    driver.wait(1.0)
    assert driver.request.age_s > 0.5
    assert driver.request.command.tolist() == [0, 0, 0]


def test_a_hang_up_is_noticed_in_the_same_tick(driver: Driver) -> None:
    driver.press(b"www")
    driver.terminal.typed = [None]
    assert driver.source.latest().age_s == inf


def test_a_connection_that_falls_silent_ages_within_half_a_second(driver: Driver) -> None:
    driver.press(b"www")
    driver.wait(1.0)
    assert driver.request.age_s < 0.3
    driver.terminal.answers = False
    driver.wait(0.5)
    assert driver.request.age_s >= 0.5


def test_what_was_typed_into_a_dead_line_does_not_move_the_duck_but_stops_it(driver: Driver) -> None:
    driver.press(b"www")
    driver.terminal.answers = False
    driver.wait(2.0)
    driver.terminal.typed = [b"wwwww\r" + ANSWER]
    driver.source.latest()
    driver.terminal.answers = True
    driver.wait(0.3)
    assert driver.request.command.tolist() == [0, 0, 0]
    assert (driver.request.event, driver.source.refused) == (None, 6)
    assert driver.press(b"w") == [0.05, 0, 0]  # who is back may drive again
    driver.terminal.answers = False
    driver.wait(2.0)
    driver.terminal.typed = [b"x"]
    assert driver.source.latest().event is Event.LIMP


def test_a_terminal_that_never_answers_is_told_to_the_user_and_left_alone(
    skills: dict[str, Skill], clock: Any
) -> None:
    silent = Driver(skills, clock, answers=False)
    silent.press(b"w")
    silent.wait(10.0)
    asked = silent.terminal.written
    silent.wait(10.0)
    assert silent.terminal.written == asked
    assert silent.request.command.tolist() == [0.05, 0, 0]
    assert silent.request.age_s == 0.0
    (said,) = silent.said
    assert "lost connection" in said


def test_what_was_typed_before_the_first_tick_starts_nothing_but_stops(
    skills: dict[str, Skill], clock: Any
) -> None:
    for typed, event in ((b"\rww", None), (b"\rq", Event.QUIT)):
        terminal = FakeTerminal(answers=True)
        source = KeyboardCommands(skills, "walk", lambda text: None, terminal=terminal, now=clock)
        terminal.typed.append(typed)
        clock.now_s += 60.0
        request = source.latest()
        assert (request.event, request.command.tolist()) == (event, [0, 0, 0])


def test_a_terminal_is_given_time_to_answer_from_the_first_question_on(
    skills: dict[str, Skill], clock: Any
) -> None:
    said: list[str] = []
    terminal = FakeTerminal(answers=True)
    source = KeyboardCommands(skills, "walk", said.append, terminal=terminal, now=clock)
    clock.now_s += 60.0
    for _ in range(20):
        clock.now_s += 0.02
        assert source.latest().age_s < 0.5
    assert said == []


def test_the_terminal_is_asked_a_few_times_a_second_only(driver: Driver) -> None:
    before = len(driver.terminal.written)
    driver.wait(10.0)
    asked = (len(driver.terminal.written) - before) / len(ASKED)
    assert 40 <= asked <= 51


def test_closing_gives_the_terminal_back(driver: Driver) -> None:
    driver.source.close()
    assert driver.terminal.closed


@pytest.mark.parametrize(
    ("data", "keys", "rest"),
    [
        (b"wS", [b"w", b"s"], b""),
        (b"\x1b[A\x1b[B", [UP, DOWN], b""),
        (b"w\x1b[", [b"w"], b"\x1b["),
        (b"\x1b", [], b"\x1b"),
        (b"\x1bx", [b"\x1b", b"x"], b""),
        (b"\x1b\x1b[A", [b"\x1b", UP], b""),
        (b"\x1b[1;5A", [b"\x1b[1;5A"], b""),
        (b"\x1b[1;2;3x", [b"\x1b[1;2;3", b"x"], b""),
        (b"\x1b[1;2;3q", [b"\x1b[1;2;3", b"q"], b""),
        (b"\x1b[1;2;3 ", [b"\x1b[1;2;3", b" "], b""),
        (b"\x1b[1;2;3\x1b[0n", [b"\x1b[1;2;3", b"\x1b[0n"], b""),
        (b"\x1b[1;2Q", [b"\x1b[1;2Q"], b""),
        (b"\x1b[" + b"1" * 40, [b"\x1b[" + b"1" * 12, *[b"1"] * 28], b""),
        (b"\xff\x00", [b"\xff", b"\x00"], b""),
    ],
)
def test_bytes_of_a_terminal_are_split_into_keys(data: bytes, keys: list[bytes], rest: bytes) -> None:
    assert split_keys(data) == (keys, rest)


def test_an_arrow_in_two_pieces_is_one_key(driver: Driver) -> None:
    assert driver.press(b"\x1b") == [0, 0, 0]
    assert driver.press(b"[A") == [0.05, 0, 0]


def test_an_escape_key_does_not_swallow_the_limp_behind_it(driver: Driver) -> None:
    driver.press(b"\x1b")
    driver.terminal.typed.append(b"x")
    assert driver.source.latest().event is Event.LIMP


def test_a_sequence_that_breaks_off_swallows_no_limp_that_comes_at_once(driver: Driver) -> None:
    driver.press(b"\x1b[1;2;3")
    driver.terminal.typed.append(b"x")
    assert driver.source.latest().event is Event.LIMP


def test_a_sequence_that_breaks_off_before_the_terminals_answer_chooses_no_skill(driver: Driver) -> None:
    skill = driver.source.latest().skill
    driver.terminal.typed.append(b"\x1b[1\x1b[0n")
    assert driver.source.latest().skill == skill


def test_a_stream_of_keys_puts_pieces_together_and_forgets_one_that_is_not_gone_on_with() -> None:
    stream = KeyStream()
    assert stream.feed(b"\x1b[", 1.0) == []
    assert stream.feed(b"Aw", 1.05) == [b"\x1b[A", b"w"]
    assert stream.feed(b"\x1b[1;2", 2.0) == []
    assert stream.feed(b"x", 2.2) == [b"x"]
