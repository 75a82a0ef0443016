from __future__ import annotations

from typing import Any

import pytest

from firmware_bridge.doctor import fixer
from firmware_bridge.doctor.adoption import Newcomer, adopt, adopt_all, choose_place, find_vacancy
from firmware_bridge.doctor.checks import find_deviations
from firmware_bridge.doctor.survey import take_survey
from firmware_bridge.emulator.device import Device
from firmware_bridge.wire import registers
from firmware_bridge.wire.protocol import Instruction
from hardware.errors import BusError, DeviceError


def new_servo(desk: Any, baud_code: int = 1) -> Any:
    servo = desk.new_servo(1, factory=True)
    servo.poke(registers.BAUD_RATE, baud_code)
    desk.plug(servo)
    return servo


def adopt_found(desk: Any, joint: str | None = None) -> int:
    found = find_vacancy(desk.open_at, joint)
    assert found is not None
    place, newcomer = found
    return adopt(desk.open_at, newcomer, place, pause=desk.pause).id


def test_a_factory_new_servo_takes_the_one_empty_place(desk: Any) -> None:
    desk.unplug(23)
    servo = new_servo(desk)
    servo.trip(0x20)
    assert find_vacancy(desk.open_at) == (23, Newcomer(1, 57_600))
    assert adopt_found(desk) == 23
    assert (servo.id, servo.baud, servo.return_delay) == (23, 1_000_000, 0)
    assert servo.peek(registers.HARDWARE_ERROR) == 0
    assert find_deviations(take_survey(desk.open_at)) == []


def test_the_id_is_written_first_then_the_speed_then_the_settings_then_comes_the_restart(desk: Any) -> None:
    desk.unplug(23)
    new_servo(desk)
    adopt_found(desk)
    steps = [
        packet.parameters[0] if packet.instruction == Instruction.WRITE else packet.instruction
        for packet in desk.orders
    ]
    # id, baud rate, return delay, PWM slope, shutdown; the operating mode is right already
    assert steps == [7, 8, 9, 62, 63, Instruction.REBOOT]


def test_no_other_servo_is_written(desk: Any) -> None:
    desk.unplug(23)
    servo = new_servo(desk)
    adopt_found(desk)
    assert desk.eeprom_writes == servo.eeprom_writes


def test_a_new_servo_at_the_ducks_speed_is_found_there(desk: Any) -> None:
    desk.unplug(23)
    new_servo(desk, baud_code=3)
    assert find_vacancy(desk.open_at) == (23, Newcomer(1, 1_000_000))
    assert 57_600 not in desk.opened
    assert adopt_found(desk) == 23


def test_a_complete_bus_is_never_listened_to_at_57600_baud(desk: Any) -> None:
    new_servo(desk)
    assert find_vacancy(desk.open_at) is None
    assert desk.opened == [1_000_000] and desk.orders == []


def test_two_empty_places_are_refused_with_the_way_out(desk: Any) -> None:
    desk.unplug(23, 11)
    new_servo(desk)
    with pytest.raises(DeviceError, match="2 servos are missing") as refusal:
        find_vacancy(desk.open_at)
    for part in ("left_knee (id 23)", "right_hip_roll (id 11)", "--joint left_knee", "--all"):
        assert part in str(refusal.value)
    assert desk.opened == [1_000_000] and desk.orders == []


def test_the_user_may_say_which_of_two_empty_places_it_is(desk: Any) -> None:
    desk.unplug(34, 11)
    new_servo(desk)
    assert adopt_found(desk, "right_hip_roll") == 11


@pytest.mark.parametrize(("joint", "reason"), [("left_knee", "answers already"), ("tail", "is no joint")])
def test_a_place_that_is_not_empty_is_refused(joint: str, reason: str) -> None:
    with pytest.raises(DeviceError, match=f"{reason}; joints whose servo is missing: neck_pitch, mouth"):
        choose_place([30, 34], joint)


def test_no_new_servo_is_an_error_that_says_what_to_do(desk: Any) -> None:
    desk.unplug(23)
    with pytest.raises(DeviceError, match="no new servo answers"):
        find_vacancy(desk.open_at)


def test_two_new_servos_at_once_are_refused(desk: Any) -> None:
    desk.unplug(23)
    new_servo(desk).poke(registers.PRESENT_POSITION, 100)
    new_servo(desk)
    with pytest.raises(DeviceError, match="more than one servo answers as id 1"):
        find_vacancy(desk.open_at)


def test_a_new_servo_of_another_model_is_refused_naming_both(desk: Any) -> None:
    desk.unplug(23)
    desk.plug(Device(1, 1030, 38, clock=desk.clock))
    with pytest.raises(DeviceError, match=r"XM430-W210 \(1030\).*XL330-M288 \(1200\)"):
        find_vacancy(desk.open_at)
    assert desk.orders == []


def test_a_doubled_id_is_refused_before_anything_is_written(desk: Any) -> None:
    twin = desk.new_servo(24)
    desk.plug(twin)
    twin.poke(registers.PRESENT_POSITION, 100)
    with pytest.raises(DeviceError, match=r"left_ankle \(id 24\)"):
        find_vacancy(desk.open_at)


@pytest.mark.parametrize("writes", [1, 2, 3, 4])
def test_an_adoption_that_broke_off_goes_on_where_it_stopped(desk: Any, writes: int) -> None:
    desk.unplug(23)
    servo = new_servo(desk)
    found = find_vacancy(desk.open_at)
    assert found is not None

    def cut(seconds: float) -> None:
        desk.pause(seconds)
        servo.silent = servo.eeprom_writes >= writes

    with pytest.raises(BusError):
        adopt(desk.open_at, found[1], 23, pause=cut)
    servo.silent = False
    if find_vacancy(desk.open_at) is not None:
        assert adopt_found(desk) == 23
    else:  # it has its place on the bus, so what is left to do is the doctor's
        findings = find_deviations(take_survey(desk.open_at))
        fixer.apply([finding.fix for finding in findings if finding.fix], desk.open_at, pause=desk.pause)
    assert find_deviations(take_survey(desk.open_at)) == []


def test_a_charged_pack_does_not_stop_an_adoption(desk: Any) -> None:
    desk.unplug(23)
    new_servo(desk).poke(registers.PRESENT_INPUT_VOLTAGE, 82)
    assert adopt_found(desk) == 23


def test_a_servo_that_stays_too_hot_is_not_adopted_in_silence(desk: Any) -> None:
    desk.unplug(23)
    new_servo(desk).poke(registers.PRESENT_TEMPERATURE, 80)
    with pytest.raises(DeviceError, match="overheating"):
        adopt_found(desk)


def test_a_whole_new_set_gets_its_ids_one_by_one(desk: Any) -> None:
    desk.unplug(*range(10, 35))
    questions: list[str] = []

    def plug_in(question: str) -> str:
        questions.append(question)
        new_servo(desk)
        return ""

    told: list[str] = []
    assert adopt_all(desk.open_at, plug_in, told.append, pause=desk.pause) == []
    assert (
        len(questions) == 15 and "left_hip_yaw (id 20)" in questions[0] and "mouth (id 34)" in questions[-1]
    )
    assert told[0].startswith("0 of 15") and len(told) == 16
    assert find_deviations(take_survey(desk.open_at)) == []


def test_a_set_begun_earlier_goes_on_with_what_is_missing(desk: Any) -> None:
    desk.unplug(33, 14)
    asked: list[str] = []

    def plug_in(question: str) -> str:
        asked.append(question)
        new_servo(desk)
        return ""

    assert adopt_all(desk.open_at, plug_in, print, pause=desk.pause) == []
    assert [("head_roll" in asked[0]), ("right_ankle" in asked[1])] == [True, True] and len(asked) == 2


def test_a_servo_that_was_not_plugged_in_is_asked_for_again(desk: Any) -> None:
    desk.unplug(23)
    told: list[str] = []
    answers = iter(["", "plug"])

    def answer(question: str) -> str:
        if next(answers) == "plug":
            new_servo(desk)
        return ""

    assert adopt_all(desk.open_at, answer, told.append, pause=desk.pause) == []
    assert "no new servo answers" in told[1] and "is set up" in told[2]


def test_a_place_can_be_left_out_and_the_set_up_stopped(desk: Any) -> None:
    desk.unplug(23, 24, 30)
    answers = iter(["s", "q"])
    assert adopt_all(desk.open_at, lambda _: next(answers), print, pause=desk.pause) == [23, 24, 30]
