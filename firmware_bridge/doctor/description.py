"""What a duck's bus must look like, made of the tables that the runtime itself goes by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from firmware_bridge.robot.imu import BOARD_ID
from firmware_bridge.robot.servos import PWM_SLOPE, Servos
from firmware_bridge.wire import protocol, registers
from firmware_bridge.wire.port import BITS_PER_BYTE
from firmware_bridge.wire.registers import Register
from hardware import servo
from hardware.joints import JOINTS, MOUTH_ID, NUM_JOINTS, SERVO_IDS

ALL_SERVO_IDS = (*SERVO_IDS, MOUTH_ID)
"""Ids of the fourteen joints and of the mouth, which a duck may be without."""
NAMES: Mapping[int, str] = {
    **{joint.servo_id: joint.name for joint in JOINTS},
    MOUTH_ID: "mouth",
    BOARD_ID: "IMU board",
}
"""Name of each device of a duck, by id."""
REQUIRED_IDS = (*SERVO_IDS, BOARD_ID)
"""Ids without which a duck cannot run: those that answer in every tick."""
FACTORY_ID = 1
"""Id that a new servo answers as; no part of a duck uses it."""
FACTORY_BAUD = 57_600
"""Speed at which a new servo answers [1/s]."""
BAUDS = (servo.BAUD, FACTORY_BAUD, 2_000_000, 3_000_000, 4_000_000)
"""Speeds at which lost devices are looked for, the likeliest first [1/s]."""
FAST_READ_FIRMWARE = 46
"""First XL330 firmware that answers a fast sync read (pollen-robotics/microduck)."""
LOWEST_VOLTAGE = 3.7
"""Lowest supply an XL330 is rated for (ROBOTIS) [V]."""
INPUT_VOLTAGE_BIT = 0x01
"""Bit of the hardware error status that a charged pack sets, since it lies above the servo's own limit."""
LATENCY_TIMER_S = 1e-3
"""Longest time a USB adapter may keep received bytes back: the smallest its timer can be set to [s]."""


@dataclass(frozen=True)
class Setting:
    """A register that a duck's servo must hold in its EEPROM.

    Attributes:
        register: the register.
        expected: its value [SI].
        effect: what another value does, in words.
        delays: whether the value is a time that each answer to the tick's read is late by.
    """

    register: Register
    expected: float
    effect: Callable[[float], str]
    delays: bool = False


SETTINGS = (
    Setting(registers.RETURN_DELAY, 0.0, lambda _: "each of its answers starts that much later", delays=True),
    Setting(
        registers.OPERATING_MODE,
        registers.POSITION_MODE,
        lambda _: "in another mode it does not go to the angle it is told",
    ),
    Setting(registers.PWM_SLOPE, PWM_SLOPE, lambda _: "it builds up torque more slowly than in training"),
    Setting(registers.SHUTDOWN, servo.SHUTDOWN_MASK, lambda mask: registers.explain_shutdown(int(mask))),
)
"""The settings that `duck doctor --fix` and `duck setup` write where they differ."""


def name_of(*devices: int) -> str:
    """Return `left_knee (id 23)` and the like, separated by commas."""
    return ", ".join(f"{NAMES.get(device, 'unknown device')} (id {device})" for device in devices)


def model_name(number: int) -> str:
    """Return a model's name with its number, as in `XL330-M288 (1200)`."""
    return f"{servo.MODEL_NAMES.get(number, 'unknown model')} ({number})"


def show(register: Register, value: float) -> str:
    """Return a register's value as a person reads it: times in microseconds."""
    if register.unit == "s":
        return f"{value * 1e6:g} us"
    return f"{value:.4g} {register.unit}".rstrip()


def plain_read_cost() -> float:
    """Return how much longer [s] a tick's read takes plain than fast: a whole packet for each device."""
    devices, length = NUM_JOINTS + 1, Servos.TICK_LENGTH
    plain = devices * (length + protocol.STATUS_OVERHEAD)
    fast = protocol.FAST_OVERHEAD + devices * (length + protocol.FAST_BLOCK_OVERHEAD)
    return (plain - fast) * BITS_PER_BYTE / servo.BAUD
