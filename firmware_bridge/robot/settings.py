"""What a duck's servos must hold in their EEPROM; whoever builds the duck writes it once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from firmware_bridge.wire import registers
from firmware_bridge.wire.registers import Register
from hardware import servo

PWM_SLOPE = 255
"""PWM slope of the robot's own runtime: the fastest rise of the motor voltage."""


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
"""`duck run` refuses a servo that differs from these; `duck doctor --fix` and `duck setup` write them."""
