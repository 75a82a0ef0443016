from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Mapping
from math import inf
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from firmware_bridge.commands.gamepad import GamepadCommands, without_dead_band
from firmware_bridge.commands.gamepad_device import find_gamepad, fits
from firmware_bridge.commands.gamepad_map import GamepadMap
from firmware_bridge.commands.request import Event
from firmware_bridge.skills.manifest import Skill
from hardware.errors import ConfigError

# linux/input-event-codes.h
EV_SYN, EV_KEY, EV_ABS, SYN_DROPPED = 0, 1, 3, 3
X, Y, RX = 0, 1, 3
SOUTH, EAST, WEST, TL, TR, SELECT, START, MODE = 0x130, 0x131, 0x134, 0x136, 0x137, 0x13A, 0x13B, 0x13C


class Input(NamedTuple):
    type: int
    code: int
    value: int


class FakePad:
    """A gamepad as evdev shows it: an Xbox pad's axes go from -32768 to 32767."""

    name = "Fake Pad"

    def __init__(self) -> None:
        self.axes = {X: 0, Y: 0, RX: 0}
        self.waiting: list[Input] = []
        self.here = True
        self.closed = False

    def read(self) -> Iterable[Input]:
        if not self.here:
            raise OSError(19, "No such device")
        if not self.waiting:
            raise BlockingIOError
        events, self.waiting = self.waiting[:64], self.waiting[64:]
        return iter(events)

    def absinfo(self, axis_num: int) -> SimpleNamespace:
        if not self.here:
            raise OSError(19, "No such device")
        return SimpleNamespace(value=self.axes[axis_num], min=-32768, max=32767)

    def close(self) -> None:
        self.closed = True

    def stick(self, axis: int, part: float) -> None:
        self.axes[axis] = round(part * 32767)
        self.waiting += [Input(EV_ABS, axis, self.axes[axis]), Input(EV_SYN, 0, 0)]

    def button(self, code: int, value: int = 1) -> None:
        self.waiting += [Input(EV_KEY, code, value), Input(EV_SYN, 0, 0)]


class Player:
    """A person with a gamepad, driving the skill "trot"."""

    def __init__(self, skills: Mapping[str, Skill], clock: Any, mapping: GamepadMap) -> None:
        self.pad, self.clock, self.said = FakePad(), clock, list[str]()
        self.found: FakePad | None = self.pad
        self.looked = threading.Event()
        self.source = GamepadCommands(skills, "trot", mapping, self.said.append, self.look, now=clock)

    def look(self) -> FakePad | None:
        self.looked.set()
        return self.found

    def tick(self, seconds: float = 0.02) -> Any:
        self.clock.now_s += seconds
        return self.source.latest()

    def start(self) -> None:
        self.tick()
        self.pad.button(START)
        assert self.tick().event is Event.START


@pytest.fixture
def player(skills: dict[str, Skill], clock: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("firmware_bridge.commands.gamepad.SEARCH_S", 0.001)
    player = Player(skills, clock, GamepadMap(skills=("BTN_WEST:walk", "BTN_EAST:stand")))
    player.tick()
    yield player
    player.source.close()


def command(request: Any) -> list[float]:
    return pytest.approx(request.command.tolist(), abs=1e-4)


def test_before_the_start_button_sticks_move_nothing(player: Player) -> None:
    player.pad.stick(Y, -1.0)
    request = player.tick()
    assert player.source.interactive
    assert (request.command.tolist(), request.age_s, request.event) == ([0, 0, 0], inf, None)


@pytest.mark.parametrize(
    ("axis", "part", "asked"),
    [
        (Y, -1.0, [0.3, 0, 0]),  # up is negative for the kernel, forward for the duck
        (Y, 1.0, [-0.2, 0, 0]),  # the box holds no more
        (Y, 0.55, [-0.1, 0, 0]),  # half of what the box holds, so that all of a stick counts
        (X, -1.0, [0, 0.2, 0]),
        (RX, 1.0, [0, 0, -1.5]),
        (RX, -0.55, [0, 0, 0.75]),  # half of the way beyond the dead band
        (RX, 0.09, [0, 0, 0]),
        (Y, -2.0, [0.3, 0, 0]),
    ],
)
def test_sticks_drive_within_their_speeds_and_the_box(
    player: Player, axis: int, part: float, asked: list[float]
) -> None:
    player.start()
    player.pad.stick(axis, part)
    request = player.tick()
    assert command(request) == asked
    assert request.age_s == 0.0


@pytest.mark.parametrize(
    ("part", "left"),
    [(0.0, 0), (0.1, 0), (-0.1, 0), (0.55, 0.5), (-0.55, -0.5), (1, 1), (1.3, 1), (0.19, 0.1)],
)
def test_a_dead_band_is_taken_out_and_the_rest_spread(part: float, left: float) -> None:
    assert without_dead_band(part, 0.1) == pytest.approx(left)


@pytest.mark.parametrize(
    ("button", "event"), [(SOUTH, Event.SIT), (SELECT, Event.LIMP), (MODE, Event.QUIT), (START, Event.START)]
)
def test_a_button_asks_once_when_it_goes_down(player: Player, button: int, event: Event) -> None:
    player.tick()
    player.pad.button(button)
    player.pad.button(button, 2)
    player.pad.button(button, 0)
    assert [player.tick().event, player.tick().event] == [event, None]


def test_buttons_choose_skills(player: Player) -> None:
    chosen = []
    for button in (WEST, EAST, TR, TR):
        player.pad.button(button)
        chosen.append(player.tick().skill)
    assert chosen == ["walk", "stand", "trot", "walk"]


def test_while_the_head_button_is_held_the_stick_moves_the_head_and_not_the_duck(player: Player) -> None:
    player.start()
    player.pad.button(TL)
    player.pad.button(TL, 2)
    player.pad.stick(Y, -1.0)
    player.pad.stick(X, 1.0)
    request = player.tick()
    assert command(request) == [0, 0, 0]
    assert request.head.tolist() == pytest.approx([0, 0.3, -1.0, 0], abs=1e-4)
    player.pad.button(TL, 0)
    request = player.tick()
    assert command(request) == [0.3, -0.2, 0]
    assert request.head.tolist() == [0, 0, 0, 0]


def test_what_was_pressed_before_the_first_tick_is_forgotten(skills: dict[str, Skill], clock: Any) -> None:
    player = Player(skills, clock, GamepadMap())
    player.pad.button(START)
    assert [player.tick().event, player.tick().age_s] == [None, inf]


def test_start_with_a_stick_held_is_refused(player: Player) -> None:
    player.pad.stick(Y, -1.0)
    player.tick()
    player.pad.button(START)
    request = player.tick()
    assert (request.event, request.age_s, player.source.refused) == (None, inf, 1)
    assert "release the sticks" in player.said[-1]


def test_a_lost_gamepad_is_stale_at_once_and_stays_paused_until_its_start_button(player: Player) -> None:
    player.start()
    player.pad.stick(Y, -1.0)
    player.tick()
    player.pad.here = False
    lost = player.tick()
    assert (lost.command.tolist(), lost.age_s) == ([0, 0, 0], inf)
    assert player.pad.closed

    player.looked.clear()
    player.pad = player.found = FakePad()
    assert player.looked.wait(30)
    for thread in threading.enumerate():
        if thread.name == "gamepad":
            thread.join(30)
    player.tick()
    player.pad.stick(Y, -1.0)
    paused = player.tick()
    assert (paused.command.tolist(), paused.age_s) == ([0, 0, 0], inf)
    player.pad.stick(Y, 0.0)
    player.tick()
    player.start()
    player.pad.stick(Y, -1.0)
    assert command(player.tick()) == [0.3, 0, 0]


def test_a_stick_held_without_any_change_counts_as_lost_after_a_while(player: Player) -> None:
    player.start()
    player.pad.stick(Y, -1.0)
    assert player.tick().age_s == 0.0
    assert player.tick(2.9).age_s == 0.0
    assert player.tick(0.2).age_s >= 3.0
    player.pad.stick(Y, -0.99)
    assert player.tick().age_s == 0.0


def test_a_gamepad_at_rest_may_be_silent(player: Player) -> None:
    player.start()
    assert player.tick(3600.0).age_s == 0.0


def test_after_events_were_dropped_sticks_are_read_anew(player: Player) -> None:
    player.start()
    player.pad.stick(Y, -1.0)
    player.tick()
    player.pad.axes[Y] = 0
    player.pad.waiting.append(Input(EV_SYN, SYN_DROPPED, 0))
    assert command(player.tick()) == [0, 0, 0]


def test_a_flood_of_events_is_taken_in_pieces_and_the_newest_stick_counts(player: Player) -> None:
    player.start()
    for number in range(1200):
        player.pad.stick(Y, -number / 1200)
    player.pad.stick(Y, 0.0)
    player.tick()
    assert player.pad.waiting
    for _ in range(3):
        request = player.tick()
    assert command(request) == [0, 0, 0]


def test_no_gamepad_is_refused_with_what_to_do(skills: dict[str, Skill]) -> None:
    with pytest.raises(ConfigError, match="'8BitDo' in its name; switch it on"):
        GamepadCommands(skills, "walk", GamepadMap(device="8BitDo"), lambda text: None, lambda: None)


def test_a_skill_the_bundle_lacks_is_refused_with_those_it_has(skills: dict[str, Skill]) -> None:
    mapping = GamepadMap(skills=("BTN_WEST:hop",))
    with pytest.raises(ConfigError, match=r"BTN_WEST chooses the skill 'hop'.*\['walk', 'stand', 'trot'\]"):
        GamepadCommands(skills, "walk", mapping, lambda text: None, FakePad)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"vx": "ABS_UP"}, "vx is 'ABS_UP'; choose an axis of ABS_X"),
        ({"start": ""}, "start is ''; choose a button of BTN_SOUTH"),
        ({"sit": "BTN_START"}, "sit is BTN_START, the button of start"),
        ({"skills": ("BTN_SOUTH:walk",)}, "skills is BTN_SOUTH, the button of sit"),
        ({"skills": ("walk",)}, "skills is 'walk'; choose a button"),
        ({"dead_band": 1.0}, r"dead_band is 1.0; it must be in \[0, 0.9\]"),
        ({"max_vx": float("nan")}, "max_vx is nan"),
        ({"silence_s": 0.0}, "silence_s is 0.0"),
    ],
)
def test_a_bad_mapping_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GamepadMap(**values)


def test_a_button_may_be_left_without_a_meaning() -> None:
    assert MODE not in GamepadMap(quit="").actions()


def test_a_device_must_have_the_sticks_and_the_buttons_that_start_and_stop() -> None:
    able = {EV_ABS: [X, Y, RX, 16], EV_KEY: [SELECT, START]}
    assert fits(GamepadMap(), "Xbox Pad", able)
    assert fits(GamepadMap(device="xbox"), "Xbox Pad", able)
    assert not fits(GamepadMap(device="8bit"), "Xbox Pad", able)
    assert not fits(GamepadMap(), "Xbox Pad", {**able, EV_KEY: [START]})
    assert not fits(GamepadMap(), "Xbox Pad", {**able, EV_ABS: [X, Y]})


def test_without_evdev_the_user_learns_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "evdev", None)
    with pytest.raises(ConfigError, match=r"install `microduck-toolkit\[gamepad\]`"):
        find_gamepad(GamepadMap())


def test_the_first_device_that_fits_is_opened_and_the_others_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed = []

    class Device:
        def __init__(self, path: str) -> None:
            if path == "gone":
                raise OSError(19, "No such device")
            self.name = path

        def capabilities(self, absinfo: bool) -> dict[int, list[int]]:
            return {EV_ABS: [X, Y, RX], EV_KEY: [SELECT, START] if self.name == "pad" else []}

        def close(self) -> None:
            closed.append(self.name)

    module = SimpleNamespace(list_devices=lambda: ["pad", "gone", "mouse"], InputDevice=Device)
    monkeypatch.setitem(sys.modules, "evdev", module)
    found = find_gamepad(GamepadMap())
    assert found is not None
    assert (found.name, closed) == ("pad", ["mouse"])


@pytest.mark.skipif(not os.access("/dev/uinput", os.W_OK), reason="needs /dev/uinput")
def test_a_gamepad_of_the_kernel_drives(skills: dict[str, Skill]) -> None:
    evdev = pytest.importorskip("evdev")
    axis = evdev.AbsInfo(0, -32768, 32767, 0, 0, 0)
    abilities = {EV_KEY: [SOUTH, SELECT, START, TL, TR, MODE], EV_ABS: [(a, axis) for a in (X, Y, RX)]}
    mapping = GamepadMap(device="duck test pad")
    with evdev.UInput(abilities, name="duck test pad") as pad:
        source = GamepadCommands(skills, "trot", mapping, lambda text: None, lambda: find_gamepad(mapping))
        source.latest()
        pad.write(EV_KEY, START, 1)
        pad.write(EV_ABS, Y, -32768)
        pad.syn()
        asked = [source.latest() for _ in range(50)]
        source.close()
    assert Event.START in [request.event for request in asked]
    assert command(asked[-1]) == [0.3, 0, 0]
