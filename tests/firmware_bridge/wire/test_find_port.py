from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from firmware_bridge.emulator.devices import EmulatedServo
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.robot import imu
from firmware_bridge.wire import bus, find_port, port
from firmware_bridge.wire.protocol import Instruction
from firmware_bridge.wire.registers import ID, MODEL_NUMBER
from hardware.errors import PortError
from hardware.joints import MOUTH_ID, SERVO_IDS


@pytest.fixture(autouse=True)
def short_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "SCAN_WINDOW_S", 0.1)


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ports of this machine, to be filled."""
    names: list[str] = []
    monkeypatch.setattr(port, "candidates", lambda: names)
    return names


def unplug_all(duck: EmulatedDuck) -> None:
    for device in (imu.BOARD_ID, *SERVO_IDS, MOUTH_ID):
        duck.unplug(device)


@pytest.fixture
def stranger(patient: Any) -> Iterator[EmulatedDuck]:
    """A bus on which a new servo is alone."""
    with EmulatedDuck() as emulated:
        unplug_all(emulated)
        emulated.plug(EmulatedServo(1))
        yield emulated


def test_the_port_is_the_one_on_which_the_duck_answers(
    duck: EmulatedDuck, stranger: EmulatedDuck, ports: list[str]
) -> None:
    ports += [stranger.port, duck.port]
    assert find_port.find_port() == duck.port


def test_a_duck_of_which_only_a_part_answers_is_found(duck: EmulatedDuck, ports: list[str]) -> None:
    ports += [duck.port]
    unplug_all(duck)
    duck.plug(EmulatedServo(14))
    assert find_port.find_port() == duck.port


def test_asking_writes_nothing(duck: EmulatedDuck, ports: list[str]) -> None:
    ports += [duck.port]
    find_port.find_port()
    assert set(duck.wire_clock.kinds) == {Instruction.SYNC_READ}


def test_two_ducks_are_refused_by_their_ports(
    duck: EmulatedDuck, stranger: EmulatedDuck, ports: list[str]
) -> None:
    ports += [duck.port, stranger.port]
    stranger.plug(EmulatedServo(20))
    with pytest.raises(PortError, match=f"ducks answer on {duck.port} and {stranger.port}; name the port"):
        find_port.find_port()


def test_without_a_duck_each_port_is_named_with_what_answered(
    duck: EmulatedDuck, stranger: EmulatedDuck, ports: list[str]
) -> None:
    ports += [duck.port, stranger.port, "/dev/ttyNoDuck"]
    unplug_all(duck)
    with pytest.raises(PortError) as error:
        find_port.find_port()
    text = str(error.value)
    assert (
        f"no duck answers at 1000000 baud ({duck.port}: silence; {stranger.port}: id 1 is model 1200;" in text
    )
    assert "/dev/ttyNoDuck: serial port /dev/ttyNoDuck does not exist" in text


def test_another_robot_with_ids_of_the_duck_is_no_duck(duck: EmulatedDuck, ports: list[str]) -> None:
    ports += [duck.port]
    other = EmulatedServo(20)
    other.poke(MODEL_NUMBER, 1060)
    unplug_all(duck)
    duck.plug(other)
    with pytest.raises(PortError, match="id 20 is model 1060"):
        find_port.find_port()
    assert other.peek(ID) == 20


def test_a_machine_without_ports_says_so(ports: list[str]) -> None:
    with pytest.raises(PortError, match="this machine has no serial port"):
        find_port.find_port()
