from __future__ import annotations

import numpy as np
import pytest

from firmware_bridge.emulator.devices import EmulatedServo
from firmware_bridge.robot import servos as servos_module
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import protocol, registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.protocol import Block, Instruction
from hardware.errors import BusError, BusTimeoutError, DeviceError, SafetyError
from hardware.joints import JOINT_NAMES, MOUTH_ID, SERVO_IDS

WRITES = (Instruction.WRITE, Instruction.SYNC_WRITE)
A01_BLOCK = bytes.fromhex("00 00 FF FF FD 00 00 00 00 08 00 00")


@pytest.fixture
def servos(wire_bus: Bus) -> Servos:
    return Servos(wire_bus)


def address(packet: protocol.Packet) -> int:
    return int.from_bytes(packet.parameters[:2], "little")


def writes(port) -> list[protocol.Packet]:
    return [packet for packet in port.sent if packet.instruction in WRITES]


def test_check_passes_a_sound_duck_and_writes_nothing(wire_port, servos: Servos) -> None:
    servos.check()
    assert {packet.instruction for packet in wire_port.sent} == {Instruction.READ, Instruction.PING}


def test_second_start_writes_nothing_to_eeprom_and_keeps_torque(wire_port, servos: Servos) -> None:
    servos.enable(200)
    wire_port.sent.clear()
    servos.check()
    assert writes(wire_port) == []
    assert wire_port.servo(20).torque


def test_missing_servos_are_named_by_joint_and_id(wire_port, servos: Servos) -> None:
    wire_port.unplug(23)
    wire_port.unplug(31)
    wire_port.wire.devices.append(EmulatedServo(1))
    with pytest.raises(DeviceError) as error:
        servos.check()
    assert "no answer from left_knee (id 23), head_pitch (id 31); other ids on this bus: [1, 200]." in str(
        error.value
    )


def test_mouth_may_be_absent(wire_port, servos: Servos) -> None:
    wire_port.unplug(MOUTH_ID)
    servos.check()


def test_mouth_that_is_there_must_be_sound(wire_port, servos: Servos) -> None:
    wire_port.servo(MOUTH_ID).poke(registers.SHUTDOWN, 53)
    with pytest.raises(DeviceError, match=r"mouth \(id 34\): shutdown"):
        servos.check()


def test_doubled_id_is_named(wire_port, servos: Servos) -> None:
    second = EmulatedServo(11)
    second.poke(registers.PRESENT_POSITION, 1234)
    wire_port.wire.devices.append(second)
    with pytest.raises(DeviceError, match=r"more than one servo answers, .* at right_hip_roll \(id 11\)"):
        servos.check()


def test_one_disturbed_answer_is_no_doubled_id(wire_port, servos: Servos) -> None:
    disturbed = []

    def once(reply: bytes) -> bytes:
        if not disturbed:
            disturbed.append(reply)
            return reply[:-1] + bytes([reply[-1] ^ 1])
        return reply

    wire_port.wire.filter = once
    servos.check()
    assert len(disturbed) == 1


def test_other_model_is_refused_naming_both(wire_port, servos: Servos) -> None:
    wire_port.servo(12).poke(registers.MODEL_NUMBER, 1030)
    with pytest.raises(
        DeviceError, match=r"right_hip_pitch \(id 12\) is XM430-W210 \(1030\), but XL330-M288 \(1200\)"
    ):
        servos.check()


def test_unknown_model_is_refused_by_number(wire_port, servos: Servos) -> None:
    wire_port.servo(12).poke(registers.MODEL_NUMBER, 4321)
    with pytest.raises(DeviceError, match=r"an unknown model \(4321\)"):
        servos.check()


@pytest.mark.parametrize(
    ("register", "count", "message"),
    [
        (registers.RETURN_DELAY, 250, r"return_delay_time \(address 9\) is 0.0005 s, but 0 s is expected"),
        (registers.OPERATING_MODE, 1, r"operating_mode \(address 11\) is 1, but 3 is expected"),
        (registers.PWM_SLOPE, 140, r"pwm_slope \(address 62\) is 140, but 255 is expected"),
        (
            registers.SHUTDOWN,
            53,
            r"shutdown \(address 63\) is 53, but 52 is expected; `duck doctor --fix` sets it",
        ),
    ],
)
def test_wrong_setting_is_refused_with_register_value_and_expectation(
    wire_port, servos: Servos, register: registers.Register, count: int, message: str
) -> None:
    wire_port.servo(33).poke(register, count)
    with pytest.raises(DeviceError, match=r"head_roll \(id 33\): " + message):
        servos.check()


def test_tripped_servo_is_refused_with_its_cause(wire_port, servos: Servos) -> None:
    wire_port.servo(24).trip(0x24)
    with pytest.raises(DeviceError, match=r"left_ankle \(id 24\) has tripped on overload \+ overheating"):
        servos.check()


def test_input_voltage_alert_of_a_full_battery_is_accepted(wire_port, servos: Servos) -> None:
    wire_port.servo(24).trip(0x01)
    servos.check()
    servos.enable(200)
    assert wire_port.servo(24).torque


def test_gain_sets_p_and_pins_i_and_d_to_zero(wire_port, servos: Servos) -> None:
    wire_port.servo(22).poke(registers.POSITION_D_GAIN, 90)
    wire_port.servo(22).poke(registers.POSITION_I_GAIN, 9)
    servos.set_gain(120)
    gains = (registers.POSITION_P_GAIN, registers.POSITION_I_GAIN, registers.POSITION_D_GAIN)
    for device in SERVO_IDS:
        assert [wire_port.servo(device).peek(gain) for gain in gains] == [120, 0, 0]


def test_unchanged_gain_costs_no_packet(wire_port, servos: Servos) -> None:
    servos.set_gain(120)
    wire_port.sent.clear()
    servos.set_gain(120)
    assert wire_port.sent == []
    servos.set_gain(200)
    assert wire_port.sent != []


def test_gain_outside_the_register_is_refused_and_not_remembered(wire_port, servos: Servos) -> None:
    servos.set_gain(200)
    with pytest.raises(SafetyError):
        servos.set_gain(-1)
    wire_port.sent.clear()
    servos.set_gain(200)
    assert wire_port.sent != []


class Deaf(EmulatedServo):
    """Misses the first packets that write to it."""

    misses = 0

    def write(self, address: int, data: bytes) -> int:
        if self.misses:
            self.misses -= 1
            return 0
        return super().write(address, data)


def replace(port, device: EmulatedServo, misses: int = 0) -> None:
    port.unplug(device.id)
    port.wire.devices.append(device)
    device.misses = misses


def test_servo_that_missed_a_gain_is_written_again(wire_port, servos: Servos, clock) -> None:
    replace(wire_port, Deaf(30, clock=clock), misses=1)
    servos.set_gain(160)
    assert wire_port.servo(30).peek(registers.POSITION_P_GAIN) == 160


def test_servo_that_never_takes_a_gain_is_named(wire_port, servos: Servos, clock) -> None:
    replace(wire_port, Deaf(30, clock=clock), misses=1000)
    with pytest.raises(DeviceError, match=r"neck_pitch \(id 30\) did not take .*position_p_gain = 160"):
        servos.set_gain(160)


def test_goal_is_the_present_position_on_the_wire_before_torque(wire_port, servos: Servos) -> None:
    knee = wire_port.servo(23)
    knee.poke(registers.GOAL_POSITION, 2048)
    knee.poke(registers.PRESENT_POSITION, 2374)  # moved by hand by 0.5 rad while limp
    servos.enable(200)
    order = [address(packet) for packet in writes(wire_port)]
    gains, goal, torque = 80, 116, 64
    assert order.index(gains) < order.index(goal) < order.index(torque)
    assert knee.peek(registers.GOAL_POSITION) == 2374
    assert knee.torque


def test_servo_that_missed_its_new_goal_gets_it_before_torque(wire_port, servos: Servos, clock) -> None:
    class DeafToGoals(EmulatedServo):
        misses = 0

        def write(self, address: int, data: bytes) -> int:
            if address == registers.GOAL_POSITION.address and self.misses:
                self.misses -= 1
                return 0
            assert address != registers.TORQUE_ENABLE.address or self.peek(registers.GOAL_POSITION) == 2374
            return super().write(address, data)

    replace(wire_port, DeafToGoals(23, clock=clock), misses=1)
    wire_port.servo(23).poke(registers.PRESENT_POSITION, 2374)
    servos.enable(200)
    assert wire_port.servo(23).torque


def test_enabled_servos_stop_when_the_bus_is_silent_for_a_fifth_of_a_second(
    wire_port, servos: Servos, clock
) -> None:
    servos.enable(200)
    clock.now += 0.19
    assert all(wire_port.servo(device).torque for device in SERVO_IDS)
    clock.now += 0.02
    assert not any(wire_port.servo(device).torque for device in SERVO_IDS)


def test_any_packet_on_the_bus_keeps_the_servos_going(wire_port, servos: Servos, clock) -> None:
    servos.enable(200)
    for _ in range(10):
        clock.now += 0.15
        servos.write_goals(np.zeros(14))
    assert all(wire_port.servo(device).torque for device in SERVO_IDS)


def test_servos_that_stopped_by_themselves_can_be_enabled_again(wire_port, servos: Servos, clock) -> None:
    servos.enable(200)
    clock.now += 1.0
    for device in SERVO_IDS:
        wire_port.servo(device).refresh()
        wire_port.servo(device).poke(registers.GOAL_PWM, 0)  # what stopping may mean to the firmware
        wire_port.servo(device).poke(registers.PRESENT_POSITION, 1900)
    servos.enable(200)
    for device in SERVO_IDS:
        assert wire_port.servo(device).torque
        assert wire_port.servo(device).peek(registers.GOAL_PWM) == 885
        assert wire_port.servo(device).peek(registers.GOAL_POSITION) == 1900


def test_each_servo_gets_its_own_pwm_limit_back(wire_port, servos: Servos) -> None:
    wire_port.servo(31).poke(registers.PWM_LIMIT, 500)
    wire_port.servo(31).poke(registers.GOAL_PWM, 0)
    servos.enable(200)
    assert wire_port.servo(31).peek(registers.GOAL_PWM) == 500
    assert wire_port.servo(32).peek(registers.GOAL_PWM) == 885


def test_watchdog_is_armed_before_torque_and_cleared_before_the_goal(wire_port, servos: Servos) -> None:
    servos.enable(200)
    order = [(address(packet), packet.parameters[5]) for packet in writes(wire_port)]
    watchdog, goal, torque = 98, 116, 64
    goal_at = [register for register, _ in order].index(goal)
    assert order.index((watchdog, 0)) < goal_at < order.index((watchdog, 10)) < order.index((torque, 1))


def test_limp_disarms_the_watchdog(wire_port, servos: Servos) -> None:
    servos.enable(200)
    servos.limp()
    assert all(wire_port.servo(device).peek(registers.BUS_WATCHDOG) == 0 for device in SERVO_IDS)


def test_servo_that_may_still_hold_torque_keeps_its_watchdog(wire_port, servos: Servos, clock) -> None:
    class KeepsTorque(EmulatedServo):
        def write(self, address: int, data: bytes) -> int:
            refused = address == registers.TORQUE_ENABLE.address and data == b"\0"
            return 7 if refused else super().write(address, data)

    replace(wire_port, KeepsTorque(20, clock=clock))
    servos.enable(200)
    with pytest.raises(DeviceError, match=r"left_hip_yaw \(id 20\); switch the battery off"):
        servos.limp()
    assert wire_port.servo(20).peek(registers.BUS_WATCHDOG) == 10
    assert wire_port.servo(21).peek(registers.BUS_WATCHDOG) == 0
    clock.now += 0.21
    assert not wire_port.servo(20).torque


def test_limp_works_on_servos_that_stopped_by_themselves(wire_port, servos: Servos, clock) -> None:
    servos.enable(200)
    clock.now += 1.0
    servos.limp()
    for device in SERVO_IDS:
        registers_now = [
            wire_port.servo(device).peek(r) for r in (registers.TORQUE_ENABLE, registers.BUS_WATCHDOG)
        ]
        assert registers_now == [0, 0]


def test_enable_writes_gains_even_if_they_were_set_before(wire_port, servos: Servos) -> None:
    servos.set_gain(200)
    wire_port.servo(20).reboot()
    servos.enable(200)
    assert wire_port.servo(20).peek(registers.POSITION_P_GAIN) == 200


def test_enable_names_the_servo_that_stays_limp(wire_port, servos: Servos) -> None:
    wire_port.servo(14).trip(0x20)
    with pytest.raises(DeviceError, match=r"right_ankle \(id 14\) has tripped on overload"):
        servos.enable(200)


def test_enable_switches_torque_on_nowhere_when_a_position_is_unknown(wire_port, servos: Servos) -> None:
    servos.set_gain(200)
    wire_port.wire.filter = lambda reply: None if reply[4] == 14 and len(reply) == 23 else reply
    with pytest.raises(BusError, match="ids 14 "):
        servos.enable(200)
    assert not any(wire_port.servo(device).torque for device in SERVO_IDS)


def test_limp_reaches_all_servos_and_the_mouth_in_one_packet(wire_port, servos: Servos) -> None:
    servos.enable(200)
    wire_port.servo(MOUTH_ID).poke(registers.TORQUE_ENABLE, 1)
    wire_port.sent.clear()
    servos.limp()
    assert [address(packet) for packet in writes(wire_port)].count(registers.TORQUE_ENABLE.address) == 1
    assert address(wire_port.sent[0]) == registers.TORQUE_ENABLE.address
    assert not any(wire_port.servo(device).torque for device in (*SERVO_IDS, MOUTH_ID))


def test_limp_writes_again_to_a_servo_that_missed_it(wire_port, servos: Servos, clock) -> None:
    replace(wire_port, Deaf(20, clock=clock))
    servos.enable(200)
    wire_port.servo(20).misses = 1
    servos.limp()
    assert not wire_port.servo(20).torque


def test_limp_goes_on_past_a_dead_servo_and_names_it(wire_port, servos: Servos) -> None:
    servos.enable(200)
    wire_port.unplug(20)
    wire_port.unplug(32)
    with pytest.raises(
        DeviceError, match=r"at left_hip_yaw \(id 20\), head_yaw \(id 32\); switch the battery off"
    ):
        servos.limp()
    assert not any(wire_port.servo(d).torque for d in SERVO_IDS if d not in (20, 32))


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times: list[float] = []
    monkeypatch.setattr(servos_module, "sleep", times.append)
    return times


def reboots(port) -> list[int]:
    return [packet.id for packet in port.sent if packet.instruction == Instruction.REBOOT]


def test_reboot_goes_limp_first_and_clears_the_fault(wire_port, servos: Servos, slept: list[float]) -> None:
    servos.enable(200)
    wire_port.servo(24).trip(0x20)
    wire_port.sent.clear()
    servos.reboot([24])
    assert address(wire_port.sent[0]) == registers.TORQUE_ENABLE.address
    assert reboots(wire_port) == [24]
    assert slept == [0.5]
    assert wire_port.servo(24).peek(registers.HARDWARE_ERROR) == 0
    assert not any(wire_port.servo(device).torque for device in SERVO_IDS)


def test_reboot_restores_the_gains_that_a_restart_loses(
    wire_port, servos: Servos, slept: list[float]
) -> None:
    servos.enable(160)
    servos.reboot()
    assert reboots(wire_port) == list(SERVO_IDS)
    gains = [wire_port.servo(device).peek(registers.POSITION_P_GAIN) for device in SERVO_IDS]
    assert gains == [160] * 14  # 400 after a restart
    servos.enable(160)
    assert all(wire_port.servo(device).torque for device in SERVO_IDS)


def test_reboot_of_servos_whose_gains_were_never_set_leaves_them(
    wire_port, servos: Servos, slept: list[float]
) -> None:
    servos.reboot([24])
    assert wire_port.servo(24).peek(registers.POSITION_P_GAIN) == 400


def test_servo_that_does_not_come_back_is_named(wire_port, servos: Servos, monkeypatch) -> None:
    monkeypatch.setattr(servos_module, "sleep", lambda seconds: wire_port.unplug(24))
    with pytest.raises(BusTimeoutError, match="device 24 gave no good answer"):
        servos.reboot([24])


def test_servo_whose_fault_is_still_there_after_a_reboot_is_named(
    wire_port, servos: Servos, monkeypatch
) -> None:
    monkeypatch.setattr(servos_module, "sleep", lambda seconds: wire_port.servo(24).trip(0x04))
    with pytest.raises(DeviceError, match=r"left_ankle \(id 24\) has tripped on overheating"):
        servos.reboot([24])


def test_nothing_is_rebooted_while_a_servo_may_hold_torque(
    wire_port, servos: Servos, slept: list[float]
) -> None:
    servos.enable(200)
    wire_port.unplug(20)
    with pytest.raises(DeviceError, match="torque may still be on"):
        servos.reboot([24])
    assert reboots(wire_port) == []


def test_goals_go_out_in_joint_order_as_one_packet(wire_port, servos: Servos) -> None:
    targets = np.arange(14) * 0.1
    servos.write_goals(targets)
    assert len(wire_port.sent) == 1
    goals = [wire_port.servo(device).peek(registers.GOAL_POSITION) for device in SERVO_IDS]
    assert goals[:3] == [2048, 2113, 2178]  # 0.1 rad is 65.19 counts
    assert goals[13] == 2895  # 847.47 counts


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_goals_that_are_not_finite_are_refused(wire_port, servos: Servos, bad: float) -> None:
    targets = np.zeros(14)
    targets[3] = bad
    with pytest.raises(SafetyError, match="14 finite angles in rad"):
        servos.write_goals(targets)
    assert wire_port.sent == []


def test_goals_of_the_wrong_number_are_refused(wire_port, servos: Servos) -> None:
    with pytest.raises(SafetyError, match="14 finite angles"):
        servos.write_goals(np.zeros((2, 14)))
    assert wire_port.sent == []


def test_goals_beyond_one_turn_stop_at_its_ends(wire_port, servos: Servos) -> None:
    servos.write_goals(np.array([4.0, -4.0] + [0.0] * 12))
    goals = [wire_port.servo(device).peek(registers.GOAL_POSITION) for device in SERVO_IDS[:2]]
    assert goals == [4095, 0]


def test_sample_is_in_joint_order_and_si_units(servos: Servos) -> None:
    blocks = {device: Block(0, A01_BLOCK) for device in reversed(SERVO_IDS)}
    blocks[200] = Block(0, bytes(12))
    blocks[10] = Block(0x80, bytes.fromhex("00 00 E8 03 00 00 00 00 00 0C 00 00"))
    sample = servos.decode(blocks)
    right_hip_yaw = JOINT_NAMES.index("right_hip_yaw")
    assert sample.position[right_hip_yaw] == pytest.approx(np.pi / 2)
    assert sample.current[right_hip_yaw] == pytest.approx(1.0)
    assert sample.velocity[right_hip_yaw] == 0.0
    others = np.arange(14) != right_hip_yaw
    assert np.allclose(sample.velocity[others], 6.067, atol=1e-3)
    assert np.allclose(sample.current[others], -0.001)
    assert np.all(sample.position[others] == 0.0)
    assert sample.alerts == {10: 0x80}


def test_offset_is_the_servo_angle_at_the_joints_zero(wire_port, wire_bus: Bus) -> None:
    offsets = np.zeros(14)
    offsets[4] = 0.2
    servos = Servos(wire_bus, offsets)
    servos.write_goals(np.zeros(14))
    assert wire_port.servo(24).peek(registers.GOAL_POSITION) == 2178  # 0.2 rad is 130.38 counts
    sample = servos.decode({device: Block(0, A01_BLOCK) for device in SERVO_IDS})
    assert sample.position[4] == pytest.approx(-0.2)


def test_holding_keeps_every_servo_where_it_is_whatever_its_offset(wire_port, wire_bus: Bus) -> None:
    for device in SERVO_IDS:
        wire_port.servo(device).poke(registers.PRESENT_POSITION, 1000 + device)
    Servos(wire_bus, np.linspace(-0.3, 0.3, 14)).hold_present()
    assert all(wire_port.servo(d).peek(registers.GOAL_POSITION) == 1000 + d for d in SERVO_IDS)


def test_tick_block_ends_where_the_position_ends() -> None:
    position = registers.PRESENT_POSITION
    assert (Servos.TICK_ADDRESS, Servos.TICK_LENGTH) == (124, 12)
    assert position.address + position.width == Servos.TICK_ADDRESS + Servos.TICK_LENGTH
