"""What `duck doctor` expects of a duck's bus beyond what the runtime insists on, and what it costs."""

from __future__ import annotations

from firmware_bridge.robot.devices import REQUIRED_IDS
from firmware_bridge.robot.servos import Servos
from firmware_bridge.wire import protocol
from firmware_bridge.wire.port import BITS_PER_BYTE
from firmware_bridge.wire.registers import Register
from hardware import servo

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
LATENCY_TIMER_S = 1e-3
"""Longest time a USB adapter may keep received bytes back: the smallest its timer can be set to [s]."""


def show(register: Register, value: float) -> str:
    """Return a register's value as a person reads it: times in microseconds."""
    if register.unit == "s":
        return f"{value * 1e6:g} us"
    return f"{value:.4g} {register.unit}".rstrip()


def plain_read_cost(devices: int = len(REQUIRED_IDS)) -> float:
    """Return how much longer [s] a tick's read takes plain than fast: a whole packet for each device."""
    length = Servos.TICK_LENGTH
    plain = devices * (length + protocol.STATUS_OVERHEAD)
    fast = protocol.FAST_OVERHEAD + devices * (length + protocol.FAST_BLOCK_OVERHEAD)
    return (plain - fast) * BITS_PER_BYTE / servo.BAUD
