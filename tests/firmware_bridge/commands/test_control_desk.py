from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest

from firmware_bridge.commands import Event, FixedCommand
from firmware_bridge.commands.remote import RemoteCommands
from firmware_bridge.control.desk import Desk, Party, Supervised
from firmware_bridge.skills.manifest import Skill


class Counter:
    """A desk, a connection to it, and the source it commands."""

    def __init__(self, source: Any, skills: dict[str, Skill]) -> None:
        self.source = source
        self.desk = Desk(source, "another program", skills, lambda: {"mode": "run"})
        self.party = self.join()

    def join(self) -> Party:
        party = Party()
        self.desk.parties.append(party)
        return party

    def ask(self, party: Party | None = None, **request: Any) -> dict[str, Any]:
        return self.desk.answer(json.dumps(request).encode(), party or self.party)


@pytest.fixture
def counter(skills: dict[str, Skill], clock: Any) -> Counter:
    return Counter(RemoteCommands(skills, "walk", clock), skills)


@pytest.fixture
def keyboards(skills: dict[str, Skill]) -> Counter:
    """The desk of a drive that takes its commands elsewhere."""
    return Counter(FixedCommand([0.1, 0.0, 0.0]), skills)


def test_a_command_is_carried_out_and_what_it_leaves_out_is_zero(counter: Counter) -> None:
    assert counter.ask(op="command", vx=0.2, yaw=-0.5) == {"ok": True}
    assert counter.ask(op="command", yaw=0.5, head=[0, 0.1, 0, 0], skill="trot") == {"ok": True}
    request = counter.desk.request()
    assert (request.skill, request.command.tolist()) == ("trot", [0, 0, 0.5])
    assert (request.head.tolist(), request.age_s) == ([0, 0.1, 0, 0], 0.0)


def test_a_skill_is_chosen_by_name(counter: Counter) -> None:
    assert counter.ask(op="skill", name="stand") == {"ok": True}
    assert counter.desk.request().skill == "stand"


@pytest.mark.parametrize(
    ("op", "event"),
    [("start", Event.START), ("sit", Event.SIT), ("limp", Event.LIMP), ("stop", Event.QUIT)],
)
def test_a_change_of_mode_reaches_the_loop_once(counter: Counter, op: str, event: Event) -> None:
    counter.ask(op=op)
    assert [counter.desk.request().event, counter.desk.request().event] == [event, None]


@pytest.mark.parametrize("op", ["sit", "limp", "stop", "start"])
def test_after_a_change_of_mode_the_old_command_is_gone(counter: Counter, op: str) -> None:
    counter.ask(op="command", vx=0.3)
    counter.ask(op=op)
    request = counter.desk.request()
    assert (request.command.tolist(), request.age_s) == ([0, 0, 0], inf)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"", "this is no JSON"),
        (b"{", "this is no JSON"),
        (b"\xff\xfe\x00", "this is no JSON"),
        (b"[" * 4000, "this is no JSON"),
        (b"9" * 4400, "this is no JSON"),
        (b'{"op": "command", "vx": NaN}', "NaN is no JSON number"),
        (b'{"op": "command", "vx": -Infinity}', "-Infinity is no JSON number"),
        (b"[1]", "'op' is None"),
        (b'"stop"', "'op' is None"),
        (b"{}", "'op' is None"),
        (b'{"op": ["stop"]}', r"'op' is ['stop']"),
        (b'{"op": "fly"}', "'op' is 'fly'; send an object whose 'op' is one of ['command', 'skill', 'start'"),
        (b'{"op": "stop", "now": 1}', "unknown key 'now' of 'stop'; valid keys: none"),
        (b'{"op": "command", "vz": 1}', "unknown key 'vz' of 'command'; valid keys: ['vx', 'vy'"),
        (b'{"op": "command", "vx": 0.31}', "command vx = 0.31 is outside [-0.1, 0.3]"),
        (b'{"op": "command", "vx": 1e999}', "command vx = inf is outside"),
        (b'{"op": "command", "vx": ' + b"9" * 400 + b"}", "'vx' is 9999"),
        (b'{"op": "command", "vx": true}', "'vx' is True; it must be a number"),
        (b'{"op": "command", "vx": "0.1"}', "'vx' is '0.1'; it must be a number"),
        (b'{"op": "command", "vx": null}', "'vx' is None; it must be a number"),
        (b'{"op": "command", "head": [0, 0, 0]}', "it must be a list: neck_pitch, head_pitch"),
        (b'{"op": "command", "head": [0, 0, 0, 9]}', "head head_roll = 9 is outside"),
        (b'{"op": "command", "skill": 1}', "'skill' is 1; it must be a text"),
        (b'{"op": "command", "skill": "hop"}', "no skill is called 'hop'; choose one of ['walk'"),
        (b'{"op": "skill"}', "'name' is None; it must be a text"),
        (b'{"op": "watch", "hz": 51}', "'hz' is 51; it must be in [0.1, 50]"),
        (b'{"op": "watch", "hz": 0}', "'hz' is 0; it must be in [0.1, 50]"),
    ],
)
def test_a_bad_request_is_answered_counted_and_changes_nothing(
    counter: Counter, line: bytes, answer: str
) -> None:
    counter.ask(op="command", vx=0.1)
    reply = counter.desk.answer(line, counter.party)
    assert reply["ok"] is False
    assert answer in reply["error"]
    assert len(reply["error"]) < 400
    assert counter.desk.refused == 1
    request = counter.desk.request()
    assert (request.skill, request.command.tolist(), request.event) == ("walk", [0.1, 0, 0], None)
    assert counter.party.period_s is None


def test_when_who_gave_the_command_leaves_it_is_lost(counter: Counter) -> None:
    other = counter.join()
    counter.ask(op="command", vx=0.1)
    counter.ask(other, op="command", vx=0.2)
    counter.desk.leave(counter.party)
    assert counter.desk.request().command.tolist() == [0.2, 0, 0]
    counter.desk.leave(other)
    request = counter.desk.request()
    assert (request.command.tolist(), request.age_s) == ([0, 0, 0], inf)


@pytest.mark.parametrize(
    "request_", [{"op": "command", "vx": 0.1}, {"op": "skill", "name": "stand"}, {"op": "start"}]
)
def test_a_drive_with_another_source_is_not_moved_from_here(
    keyboards: Counter, request_: dict[str, Any]
) -> None:
    reply = keyboards.ask(**request_)
    assert "takes its commands from: another program" in reply["error"]
    request = keyboards.desk.request()
    assert (request.skill, request.command.tolist(), request.event) == (None, [0.1, 0, 0], None)


def test_but_anyone_may_stop_it(keyboards: Counter) -> None:
    events = []
    for op in ("sit", "limp", "stop"):
        assert keyboards.ask(op=op) == {"ok": True}
        events.append(keyboards.desk.request().event)
    assert events == [Event.SIT, Event.LIMP, Event.QUIT]


def test_a_stop_from_here_beats_a_start_of_the_drives_own_source(
    counter: Counter, skills: dict[str, Skill]
) -> None:
    counter.source.start()
    counter.ask(op="limp")
    assert [counter.desk.request().event, counter.desk.request().event] == [Event.LIMP, None]


def test_the_loop_sees_the_source_with_what_was_refused_on_both_sides(keyboards: Counter) -> None:
    supervised = Supervised(keyboards.source, keyboards.desk)
    keyboards.source.refused = 2
    keyboards.ask(op="fly")
    assert (supervised.refused, supervised.interactive) == (3, False)
    assert supervised.latest().command.tolist() == [0.1, 0, 0]


def test_the_status_tells_the_drive_and_its_newest_tick(counter: Counter) -> None:
    counter.ask(op="fly")
    status = counter.ask(op="status")
    assert status["tick"] == {"mode": "run"}
    drive = status["drive"]
    assert (drive["source"], drive["clients"], drive["refused"]) == ("another program", 1, 1)
    assert drive["skills"]["walk"] == {"low": [-0.1, 0.0, -0.5], "high": [0.3, 0.0, 0.5]}


def test_a_watcher_says_how_often(counter: Counter) -> None:
    assert counter.ask(op="watch", hz=50) == {"ok": True}
    assert counter.party.period_s == pytest.approx(0.02)
