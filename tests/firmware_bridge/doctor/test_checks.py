from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.doctor.checks import find_deviations
from firmware_bridge.doctor.facts import (
    Answer,
    BoardFacts,
    Doubled,
    LatencyTimer,
    ServoFacts,
    Stray,
    Survey,
    Unreliable,
)
from firmware_bridge.doctor.findings import (
    Finding,
    Level,
    MoveToBaud,
    Restart,
    SetLatencyTimer,
    WriteRegister,
    cost,
    exit_code,
    verdict,
)
from firmware_bridge.drive.limits import Battery, Limits
from firmware_bridge.wire import registers
from firmware_bridge.wire.registers import Register

JOINT_IDS = (*range(20, 25), *range(30, 34), *range(10, 15))
GOOD: dict[Register, float] = {
    registers.RETURN_DELAY: 0.0,
    registers.OPERATING_MODE: 3,
    registers.HOMING_OFFSET: 0.0,
    registers.PWM_SLOPE: 255,
    registers.SHUTDOWN: 52,
    registers.TORQUE_ENABLE: 0,
    registers.HARDWARE_ERROR: 0,
    registers.PRESENT_INPUT_VOLTAGE: 7.4,
    registers.PRESENT_TEMPERATURE: 30,
}


def servo(device: int, firmware: int = 52, **changed: float) -> ServoFacts:
    values = {register: changed.get(register.name, value) for register, value in GOOD.items()}
    return ServoFacts(device, 1200, firmware, fast=True, values=values)


def survey(*changed: ServoFacts, without: tuple[int, ...] = (), **more: Any) -> Survey:
    answers: dict[int, Answer] = {device: servo(device) for device in (*JOINT_IDS, 34)}
    answers[200] = BoardFacts(10200, 2, True, 3, True)
    answers |= {facts.id: facts for facts in changed}
    return Survey(1_000_000, {i: a for i, a in answers.items() if i not in without}, **more)


def answering(device: int, answer: Answer) -> Survey:
    whole = survey()
    return replace(whole, answers={**whole.answers, device: answer})


def only(seen: Survey) -> Finding:
    (finding,) = find_deviations(seen)
    return finding


def test_a_duck_as_it_should_be_has_no_deviation() -> None:
    assert find_deviations(survey()) == []
    assert exit_code([]) == 0 and verdict([]) == "All well."


def test_a_return_delay_of_500_us_costs_half_a_millisecond_for_each_joint() -> None:
    late = [servo(device, return_delay_time=500e-6) for device in (*JOINT_IDS, 34)]
    findings = find_deviations(survey(*late))
    assert [finding.what for finding in findings] == ["return delay time"] * 15
    assert {(finding.found, finding.expected) for finding in findings} == {("500 us", "0 us")}
    joints, mouth = findings[:-1], findings[-1]
    assert all(finding.cost_s == pytest.approx(0.5e-3) for finding in joints)
    assert mouth.cost_s == 0  # no tick asks the mouth
    assert cost(findings) == pytest.approx(7.0e-3)
    assert findings[0].fix == WriteRegister(20, registers.RETURN_DELAY, 0.0)


def test_a_latency_timer_of_16_ms_costs_15_more_than_one_of_1() -> None:
    path = Path("/sys/class/tty/ttyUSB0/device/latency_timer")
    finding = only(survey(latency=LatencyTimer(path, 0.016)))
    assert (finding.found, finding.expected) == ("16 ms", "1 ms")
    assert finding.cost_s == pytest.approx(15e-3) and finding.fix == SetLatencyTimer(path)
    assert find_deviations(survey(latency=LatencyTimer(path, 0.001))) == []


def test_a_latency_timer_that_is_no_number_is_not_taken_for_a_good_one() -> None:
    assert only(survey(latency=LatencyTimer(Path("/sys/x"), None))).level is Level.FIXABLE


def test_old_firmware_costs_the_difference_between_a_plain_and_a_fast_read_once() -> None:
    finding = only(survey(servo(23, firmware=45), servo(24, firmware=38)))
    assert finding.where == "left_knee (id 23), left_ankle (id 24)" and finding.found == "firmware 38, 45"
    # 15 packets of 23 bytes against one of 8 + 15 * 16, at 10 us a byte.
    assert finding.cost_s == pytest.approx((345 - 248) * 10e-6)
    assert find_deviations(survey(servo(23, firmware=46))) == []


@pytest.mark.parametrize("answer", [replace(servo(31), fast=False), BoardFacts(10200, 1, False, 3, True)])
def test_a_device_without_the_fast_read_is_named_whatever_its_firmware(answer: Answer) -> None:
    device = answer.id if isinstance(answer, ServoFacts) else 200
    finding = only(answering(device, answer))
    assert finding.where.endswith(f"(id {device})") and finding.cost_s == pytest.approx(0.97e-3)


def test_old_firmware_of_the_mouth_does_no_harm() -> None:
    assert find_deviations(survey(servo(34, firmware=38))) == []


def test_the_factory_shutdown_mask_is_explained_the_right_way_round() -> None:
    finding = only(survey(servo(23, shutdown=53)))
    assert finding.effect == (
        "trips on overload + electrical shock + overheating + input voltage; does not trip on motor encoder"
    )
    assert finding.fix == WriteRegister(23, registers.SHUTDOWN, 52)


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [("operating_mode", 5, "operating mode"), ("pwm_slope", 140, "pwm slope")],
)
def test_other_settings_can_be_fixed_and_cost_no_time(name: str, value: int, what: str) -> None:
    finding = only(survey(servo(23, **{name: value})))
    assert (finding.what, finding.found, finding.level) == (what, str(value), Level.FIXABLE)
    assert finding.cost_s is None and finding.fix is not None


def test_a_homing_offset_is_told_and_never_written() -> None:
    finding = only(survey(servo(13, homing_offset=-0.785398)))
    assert finding.found == "-0.7854 rad" and finding.level is Level.WARNING and finding.fix is None


def test_a_tripped_servo_names_its_cause_and_can_be_restarted() -> None:
    finding = only(survey(servo(23, hardware_error_status=0x24)))
    assert finding.found == "overload + overheating" and finding.fix == Restart(23)


def test_input_voltage_that_trips_nothing_is_no_deviation() -> None:
    assert find_deviations(survey(servo(23, hardware_error_status=0x01))) == []


def test_input_voltage_trips_a_servo_with_the_factory_mask() -> None:
    findings = find_deviations(survey(servo(23, hardware_error_status=0x01, shutdown=53)))
    assert [(f.what, f.found) for f in findings] == [("shutdown", "53"), ("hardware error", "input voltage")]


def test_an_encoder_fault_warns_though_it_trips_nothing() -> None:
    finding = only(survey(servo(23, hardware_error_status=0x08)))
    assert (finding.found, finding.level, finding.fix) == ("motor encoder", Level.WARNING, None)


@pytest.mark.parametrize("volts", [4.986, 3.7, 8.4])
def test_a_voltage_a_servo_can_live_with_says_nothing_about_a_battery(volts: float) -> None:
    assert find_deviations(survey(servo(23, present_input_voltage=volts))) == []


@pytest.mark.parametrize("volts", [3.6, 8.5])
def test_a_voltage_out_of_range_warns(volts: float) -> None:
    assert only(survey(servo(23, present_input_voltage=volts))).expected == "3.7 to 8.4 V"


def test_an_empty_pack_warns_where_the_rail_is_the_pack() -> None:
    low = survey(servo(23, present_input_voltage=6.5))
    assert find_deviations(low) == []
    (finding,) = find_deviations(low, battery=Battery(rail_is_pack=True))
    assert finding.effect == "the pack is empty"


def test_a_servo_is_hot_from_the_limit_of_the_settings_on() -> None:
    limits = Limits(temperature_warn=55)
    assert find_deviations(survey(servo(23, present_temperature=54)), limits) == []
    (finding,) = find_deviations(survey(servo(23, present_temperature=55)), limits)
    assert finding.what == "temperature" and finding.level is Level.WARNING


def test_a_silent_joint_keeps_the_duck_from_running() -> None:
    finding = only(survey(without=(23,)))
    assert (finding.where, finding.level) == ("left_knee (id 23)", Level.CANNOT_RUN)
    assert "duck setup" not in finding.remedy


def test_a_new_servo_on_the_bus_is_offered_for_the_silent_joint() -> None:
    findings = find_deviations(survey(without=(23,), strays=(Stray(1, 57_600, 1200),)))
    assert [finding.level for finding in findings] == [Level.CANNOT_RUN, Level.WARNING]
    assert "`duck setup --joint left_knee`" in findings[0].remedy
    assert findings[1].found == "XL330-M288 (1200) at 57600 baud"


def test_a_silent_mouth_is_no_deviation() -> None:
    assert find_deviations(survey(without=(34,))) == []


def test_a_joint_at_another_speed_is_brought_back() -> None:
    finding = only(survey(without=(23,), strays=(Stray(23, 57_600, 1200),)))
    assert finding.fix == MoveToBaud(23, 57_600, 1_000_000) and finding.level is Level.FIXABLE


def test_a_foreign_model_at_another_speed_is_left_alone() -> None:
    finding = only(survey(without=(23,), strays=(Stray(23, 57_600, 1030),)))
    assert finding.what == "model" and finding.fix is None


def test_a_board_at_another_speed_keeps_the_duck_from_running() -> None:
    finding = only(survey(without=(200,), strays=(Stray(200, 57_600, 10200),)))
    assert finding.level is Level.CANNOT_RUN and finding.fix is None


def test_a_second_servo_with_a_joints_id_at_another_speed_is_told() -> None:
    finding = only(survey(strays=(Stray(23, 57_600, 1200),)))
    assert finding.level is Level.WARNING and finding.effect == "its id is that of another device"


@pytest.mark.parametrize("answer", [Doubled(), Unreliable("it went away"), ServoFacts(23, 1030, 38)])
def test_an_id_that_does_not_answer_as_one_right_servo_keeps_the_duck_from_running(answer: Answer) -> None:
    assert only(answering(23, answer)).level is Level.CANNOT_RUN


@pytest.mark.parametrize(
    ("board", "level", "found"),
    [
        (BoardFacts(10200, 2, True, 0, False), Level.CANNOT_RUN, "0 (no sensor chip found)"),
        (BoardFacts(10200, 2, True, 5, True), Level.WARNING, "5 (orientation filter could not be set up)"),
        (BoardFacts(1200, 52), Level.CANNOT_RUN, "XL330-M288 (1200)"),
    ],
)
def test_the_imu_boards_state_is_told(board: BoardFacts, level: Level, found: str) -> None:
    finding = only(answering(200, board))
    assert (finding.where, finding.level, finding.found) == ("IMU board (id 200)", level, found)


def test_a_bus_on_which_nothing_answers_is_one_finding_and_not_fifteen() -> None:
    finding = only(Survey(1_000_000, {}, bauds=(1_000_000, 57_600)))
    assert finding.level is Level.CANNOT_RUN and "1000000, 57600" in finding.effect


def test_what_keeps_the_duck_from_running_comes_first_and_decides_the_exit_code() -> None:
    findings = find_deviations(survey(servo(23, return_delay_time=500e-6), without=(20,)))
    assert [finding.level for finding in findings] == [Level.CANNOT_RUN, Level.FIXABLE]
    assert exit_code(findings) == 2 and exit_code(findings[1:]) == 1
    assert verdict(findings) == (
        "The duck cannot run: 2 deviations, costing 0.50 ms of every 20 ms tick. "
        "`duck doctor --fix` puts 1 right."
    )
