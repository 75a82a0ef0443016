from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from firmware_bridge.commands.remote import RemoteCommands
from firmware_bridge.commands.request import NO_HEAD, Event
from firmware_bridge.skills.manifest import Skill
from hardware.errors import CommandError


@pytest.fixture
def source(skills: dict[str, Skill], clock: Any) -> RemoteCommands:
    return RemoteCommands(skills, "walk", clock)


def test_before_the_first_command_there_is_none_alive(source: RemoteCommands) -> None:
    request = source.latest()
    assert (request.skill, request.command.tolist(), request.age_s) == ("walk", [0, 0, 0], inf)
    assert source.interactive


def test_the_newest_command_counts_and_ages(source: RemoteCommands, clock: Any) -> None:
    source.give(np.array([0.1, 0, 0]), NO_HEAD, None)
    source.give(np.array([0.2, 0, -0.5]), np.array([0, 0.1, 0, 0]), None)
    clock.now_s += 0.7
    request = source.latest()
    assert (request.command.tolist(), request.head.tolist()) == ([0.2, 0, -0.5], [0, 0.1, 0, 0])
    assert request.age_s == pytest.approx(0.7)


def test_a_command_outside_the_box_changes_nothing(source: RemoteCommands) -> None:
    source.give(np.array([0.1, 0, 0]), NO_HEAD, None)
    for command, head, skill in (
        ([0.4, 0, 0], NO_HEAD, None),
        ([np.nan, 0, 0], NO_HEAD, None),
        ([0.1, 0, 0], np.array([0, 0, 0, 2.0]), None),
        ([0.1, 0, 0], NO_HEAD, "stand"),
        ([0.1, 0, 0], NO_HEAD, "hop"),
    ):
        with pytest.raises(CommandError):
            source.give(np.array(command), head, skill)
    request = source.latest()
    assert (request.skill, request.command.tolist()) == ("walk", [0.1, 0, 0])


def test_another_skill_takes_the_command_into_its_box_and_does_not_renew_it(
    source: RemoteCommands, clock: Any
) -> None:
    source.give(np.array([0.3, 0, 0.5]), NO_HEAD, None)
    clock.now_s += 0.6
    source.choose("stand")
    request = source.latest()
    assert (request.skill, request.command.tolist()) == ("stand", [0, 0, 0])
    assert request.age_s == pytest.approx(0.6)


def test_a_start_that_nobody_heard_in_time_moves_nothing_later(source: RemoteCommands, clock: Any) -> None:
    source.start()
    clock.now_s += 0.6
    assert (source.latest().event, source.refused) == (None, 1)


def test_a_start_forgets_what_was_commanded_before_it(source: RemoteCommands) -> None:
    source.give(np.array([0.3, 0, 0]), NO_HEAD, None)
    source.start()
    request = source.latest()
    assert (request.event, request.command.tolist(), request.age_s) == (Event.START, [0, 0, 0], inf)
