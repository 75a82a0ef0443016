from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.doctor import fixer
from firmware_bridge.doctor.checks import find_deviations
from firmware_bridge.doctor.findings import MoveToBaud, Restart, SetLatencyTimer, WriteRegister
from firmware_bridge.doctor.fixer import Outcome
from firmware_bridge.doctor.survey import take_survey
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import registers
from firmware_bridge.wire.protocol import Instruction
from hardware.errors import DeviceError

SLOPE = WriteRegister(23, registers.PWM_SLOPE, 255)


def examine_and_fix(desk: Any) -> list[Outcome]:
    findings = find_deviations(take_survey(desk.open_at))
    desk.sent.clear()
    return fixer.apply([f.fix for f in findings if f.fix], desk.open_at, pause=desk.pause)


def test_servos_with_factory_settings_become_the_ducks_and_a_second_run_writes_nothing(desk: Any) -> None:
    for device in (20, 21, 34):
        servo = desk.servo(device)
        servo.poke(registers.RETURN_DELAY, 250)
        servo.poke(registers.PWM_SLOPE, 140)
        servo.poke(registers.SHUTDOWN, 53)
    outcomes = examine_and_fix(desk)
    assert len(outcomes) == 9 and all(outcome.done for outcome in outcomes)
    for device in (20, 21, 34):
        held = [
            desk.servo(device).peek(r)
            for r in (registers.RETURN_DELAY, registers.PWM_SLOPE, registers.SHUTDOWN)
        ]
        assert held == [0, 255, 52]
    written = desk.eeprom_writes
    assert examine_and_fix(desk) == []
    assert desk.eeprom_writes == written and desk.orders == []


def test_a_duck_with_right_settings_keeps_its_torque_and_gets_no_write(desk: Any) -> None:
    desk.servo(23).poke(registers.TORQUE_ENABLE, 1)
    assert examine_and_fix(desk) == []
    assert desk.orders == [] and desk.servo(23).peek(registers.TORQUE_ENABLE) == 1


def test_only_what_differs_is_written(desk: Any) -> None:
    desk.servo(23).poke(registers.PWM_SLOPE, 140)
    examine_and_fix(desk)
    assert desk.eeprom_writes == 1 and desk.servo(23).eeprom_writes == 1


def test_a_register_that_was_put_right_in_the_meantime_is_not_written(desk: Any) -> None:
    assert fixer.apply([SLOPE], desk.open_at, pause=desk.pause) == [Outcome(True, fixer.describe(SLOPE))]
    assert desk.eeprom_writes == 0


def test_all_servos_go_limp_before_the_first_write(desk: Any) -> None:
    for device in (20, 23, 34):
        desk.servo(device).poke(registers.TORQUE_ENABLE, 1)
    desk.servo(23).poke(registers.PWM_SLOPE, 140)
    assert all(outcome.done for outcome in examine_and_fix(desk))
    first = desk.orders[0]
    assert first.instruction == Instruction.SYNC_WRITE and first in desk.torque_orders
    assert [desk.servo(device).peek(registers.TORQUE_ENABLE) for device in (20, 23, 34)] == [0, 0, 0]


def test_a_servo_that_missed_the_packet_for_all_goes_limp_on_its_own(desk: Any) -> None:
    with desk.open_at(1_000_000) as bus:
        servo = desk.servo(23)
        servo.poke(registers.TORQUE_ENABLE, 1)
        servo.poke(registers.PWM_SLOPE, 140)
        assert fixer.change_settings(bus, 23, [(registers.PWM_SLOPE, 255)], desk.pause) == 1
    assert (servo.peek(registers.TORQUE_ENABLE), servo.peek(registers.PWM_SLOPE)) == (0, 255)


def test_a_servo_that_does_not_hold_what_was_written_is_found_out(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    servo = desk.servo(23)
    servo.poke(registers.PWM_SLOPE, 140)
    monkeypatch.setattr(servo, "write", lambda address, data: 0)
    (outcome,) = examine_and_fix(desk)
    assert not outcome.done and "holds 140 in pwm_slope after 255 was written" in outcome.text


def test_one_fix_that_fails_does_not_stop_the_others(desk: Any) -> None:
    desk.servo(24).poke(registers.PWM_SLOPE, 140)
    desk.servo(23).silent = True
    other = WriteRegister(24, registers.PWM_SLOPE, 255)
    outcomes = fixer.apply([SLOPE, other], desk.open_at, pause=desk.pause)
    assert [outcome.done for outcome in outcomes] == [False, True]
    assert desk.servo(24).peek(registers.PWM_SLOPE) == 255


def test_a_servo_at_another_speed_is_brought_to_the_ducks(desk: Any) -> None:
    desk.servo(23).poke(registers.BAUD_RATE, 1)
    outcomes = examine_and_fix(desk)
    assert outcomes == [
        Outcome(True, "left_knee (id 23): set the baud rate from 57600 to 1000000, and what else differs")
    ]
    assert take_survey(desk.open_at).silent == ()


def test_a_servo_that_lost_everything_is_put_right_in_one_run(desk: Any) -> None:
    desk.unplug(23)
    desk.plug(desk.new_servo(23, factory=True))
    assert [outcome.done for outcome in examine_and_fix(desk)] == [True]
    assert find_deviations(take_survey(desk.open_at)) == []


def test_a_servo_that_answers_at_neither_speed_fails_its_fix(desk: Any) -> None:
    desk.servo(23).silent = True
    (outcome,) = fixer.apply([MoveToBaud(23, 57_600, 1_000_000)], desk.open_at, pause=desk.pause)
    assert not outcome.done


def test_a_tripped_servo_is_restarted_after_its_settings_are_right(desk: Any) -> None:
    servo = desk.servo(23)
    servo.poke(registers.SHUTDOWN, 53)
    servo.trip(0x01)
    assert all(outcome.done for outcome in examine_and_fix(desk))
    assert [packet.instruction for packet in desk.orders][-1] == Instruction.REBOOT
    assert find_deviations(take_survey(desk.open_at)) == []


def test_a_servo_that_is_still_too_hot_fails_its_restart(desk: Any) -> None:
    servo = desk.servo(23)
    servo.poke(registers.PRESENT_TEMPERATURE, 75)
    servo.trip(0x04)
    (outcome,) = fixer.apply([Restart(23)], desk.open_at, pause=desk.pause)
    assert not outcome.done and "overheating" in outcome.text


def test_a_charged_pack_does_not_fail_a_restart(desk: Any) -> None:
    desk.servo(23).poke(registers.PRESENT_INPUT_VOLTAGE, 82)
    with desk.open_at(1_000_000) as bus:
        fixer.restart(bus, 23, desk.pause)
    assert desk.servo(23).peek(registers.HARDWARE_ERROR) == 0x01


def test_the_latency_timer_is_set_without_a_word_to_the_servos(desk: Any, tmp_path: Path) -> None:
    path = tmp_path / "latency_timer"
    path.write_text("16\n")
    (outcome,) = fixer.apply([SetLatencyTimer(path)], desk.open_at)
    assert outcome.done and path.read_text() == "1\n"
    assert desk.sent == []


def test_a_latency_timer_that_may_not_be_set_fails_its_fix(desk: Any, tmp_path: Path) -> None:
    (outcome,) = fixer.apply([SetLatencyTimer(tmp_path)], desk.open_at)
    assert not outcome.done and "sudo tee" in outcome.text


@pytest.mark.parametrize(("register", "count"), [(9, 250), (11, 5), (62, 140), (63, 53)])
def test_what_the_handshake_refuses_it_takes_after_a_fix(desk: Any, register: int, count: int) -> None:
    desk.servo(23).memory[register] = count
    with desk.open_at(1_000_000) as bus, pytest.raises(DeviceError, match="duck doctor --fix"):
        Servos(bus).check()
    examine_and_fix(desk)
    with desk.open_at(1_000_000) as bus:
        Servos(bus).check()


def test_an_address_that_is_refused_is_an_error(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk.servo(23), "write", lambda address, data: 7)
    with desk.open_at(1_000_000) as bus, pytest.raises(DeviceError, match="refused the write of id"):
        fixer.write_address(bus, 23, registers.ID, 24)
