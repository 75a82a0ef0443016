from __future__ import annotations

from typing import Any

import pytest

from firmware_bridge.doctor.facts import BoardFacts, Doubled, ServoFacts, Stray, Unreliable
from firmware_bridge.doctor.servo_checks import servo_deviations
from firmware_bridge.doctor.survey import examine_servo, take_survey
from firmware_bridge.drive.limits import Battery, Limits
from firmware_bridge.emulator.device import Device
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Instruction
from hardware.errors import PortError


def test_a_complete_duck_is_looked_at_at_its_own_speed_only(desk: Any) -> None:
    survey = take_survey(desk.open_at)
    assert desk.opened == [1_000_000]
    assert list(survey.answers) == [*range(20, 25), *range(30, 34), *range(10, 15), 34, 200]
    assert survey.strays == () and survey.silent == ()


def test_a_duck_without_a_mouth_is_complete(desk: Any) -> None:
    desk.unplug(34)
    assert take_survey(desk.open_at).silent == () and desk.opened == [1_000_000]


def test_looking_changes_nothing(desk: Any) -> None:
    desk.unplug(11, 200)
    take_survey(desk.open_at)
    assert desk.orders == [] and desk.eeprom_writes == 0


def test_a_servo_is_read_in_si_units(desk: Any) -> None:
    servo = desk.servo(23)
    servo.poke(registers.RETURN_DELAY, 250)
    servo.poke(registers.PRESENT_INPUT_VOLTAGE, 74)
    facts = take_survey(desk.open_at).answers[23]
    assert isinstance(facts, ServoFacts) and (facts.model, facts.firmware) == (1200, 52)
    assert facts.values[registers.RETURN_DELAY] == pytest.approx(500e-6)
    assert facts.values[registers.PRESENT_INPUT_VOLTAGE] == pytest.approx(7.4)
    assert facts.values[registers.SHUTDOWN] == 52 and facts.values[registers.TORQUE_ENABLE] == 0


def test_a_lost_servo_is_looked_for_at_other_speeds_until_it_is_found(desk: Any) -> None:
    desk.servo(23).poke(registers.BAUD_RATE, 4)  # 2 Mbaud
    survey = take_survey(desk.open_at)
    assert survey.strays == (Stray(23, 2_000_000, 1200),)
    assert desk.opened == [1_000_000, 57_600, 2_000_000]


def test_a_new_servo_ends_the_search_for_a_missing_one(desk: Any) -> None:
    desk.unplug(23)
    desk.plug(desk.new_servo(1, factory=True))
    survey = take_survey(desk.open_at)
    assert survey.newcomers == (Stray(1, 57_600, 1200),) and survey.silent == (23,)
    assert desk.opened == [1_000_000, 57_600]


def test_a_device_found_nowhere_is_looked_for_at_every_speed(desk: Any) -> None:
    desk.unplug(23)
    survey = take_survey(desk.open_at)
    assert survey.bauds == (1_000_000, 57_600, 2_000_000, 3_000_000, 4_000_000)
    assert survey.silent == (23,)


def test_a_duck_set_to_another_speed_is_looked_at_there_first(desk: Any) -> None:
    for device in desk.wire.devices:
        device.poke(registers.BAUD_RATE, 4)
    survey = take_survey(desk.open_at, baud=2_000_000)
    assert desk.opened == [2_000_000] and len(survey.answers) == 16


def test_a_speed_that_the_port_does_not_have_is_noted(desk: Any) -> None:
    desk.unplug(23)
    desk.refused = {3_000_000, 4_000_000}
    assert take_survey(desk.open_at).refused_bauds == (3_000_000, 4_000_000)


def test_a_port_that_fails_at_the_ducks_own_speed_is_an_error(desk: Any) -> None:
    desk.refused = {1_000_000}
    with pytest.raises(PortError):
        take_survey(desk.open_at)


def test_two_servos_with_one_id_are_told_apart_from_one(desk: Any) -> None:
    twin = desk.new_servo(23)
    desk.plug(twin)
    twin.poke(registers.PRESENT_POSITION, 100)
    assert take_survey(desk.open_at).answers[23] == Doubled()


def test_one_late_answer_does_not_make_two_servos_of_one(desk: Any) -> None:
    late: list[bytes] = []

    def delay(reply: bytes) -> bytes:
        if not late:  # the first answer to anything misses its time
            late.append(reply)
            return b""
        first, late[0] = late[0], b""
        return first + reply

    desk.wire.filter = delay
    assert isinstance(take_survey(desk.open_at).answers[20], ServoFacts)


def test_an_unknown_id_on_the_bus_is_a_stray(desk: Any) -> None:
    desk.plug(Device(77, 1030, 38, clock=desk.clock))
    assert take_survey(desk.open_at).strays == (Stray(77, 1_000_000, 1030),)


def test_a_board_whose_filter_does_not_run_shows_its_status(desk: Any) -> None:
    board = desk.wire.at(200)[0]
    assert take_survey(desk.open_at).answers[200] == BoardFacts(10200, 2, True, 3, started=True)
    board.started = False
    desk.pause(1.0)
    assert take_survey(desk.open_at).answers[200] == BoardFacts(10200, 2, True, 1, started=False)


def test_a_servo_that_refuses_to_be_read_is_unreliable(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    servo = desk.servo(23)
    read = servo.read
    monkeypatch.setattr(servo, "read", lambda at, length: (7, b"") if at == 9 else read(at, length))
    answer = take_survey(desk.open_at).answers[23]
    assert isinstance(answer, Unreliable) and "ids 23 to the read at address 9" in answer.reason


@pytest.mark.parametrize("device", [31, 200])
def test_a_device_that_does_not_answer_a_fast_sync_read_is_found_by_asking(desk: Any, device: int) -> None:
    desk.wire.at(device)[0].knows_fast_sync_read = False
    answers = take_survey(desk.open_at).answers
    slow = [i for i, a in answers.items() if isinstance(a, ServoFacts | BoardFacts) and not a.fast]
    assert slow == [device]


def test_a_foreign_model_is_not_read_any_further(desk: Any) -> None:
    desk.unplug(23)
    desk.plug(Device(23, 1030, 38, clock=desk.clock))
    assert take_survey(desk.open_at).answers[23] == ServoFacts(23, 1030, 38)
    reads = [p.parameters[:2] for p in desk.sent if p.id == 23 and p.instruction == Instruction.READ]
    assert reads == [bytes([120, 0])]  # the look whether one device answers or two


def test_the_model_in_the_answer_to_a_ping_is_compared_before_use(scripted: type[Any]) -> None:
    port = scripted("FF FF FD 00 01 07 00 55 00 06 04 26 65 5D")
    facts = examine_servo(Bus(port), 1)
    assert len(port.sent) == 1
    (finding,) = servo_deviations(facts, Limits(), Battery())
    assert (finding.found, finding.expected) == ("XM430-W210 (1030)", "XL330-M288 (1200)")
