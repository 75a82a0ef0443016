"""The XL330's control table as typed rows, and the meaning of its error bits.

Source: ROBOTIS e-Manual, XL330-M288-T control table (addresses, widths, ranges) and hardware error status.
Left out are rows that no duck uses: drive mode, velocity loop, feed-forward, trajectories, indirection.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from struct import Struct

from hardware import servo
from hardware.errors import SafetyError

EEPROM_END = 64
"""Addresses below this survive a power cycle and can be written only while torque is off."""
POSITION_MODE = 3
"""Operating mode in which a servo holds a position within one turn."""


@dataclass(frozen=True)
class Register:
    """One row of a control table; value = (count - centre) * factor.

    Attributes:
        name: name of the row.
        address: address of its first byte.
        width: bytes.
        signed: whether the count is two's complement.
        factor: SI units per count; the integer 1 for a plain number.
        unit: SI unit, empty for a plain number.
        centre: count at value 0.
        limits: lowest and highest count that may be written; None for a row that is only read.
    """

    name: str
    address: int
    width: int
    signed: bool = False
    factor: float = 1
    unit: str = ""
    centre: int = 0
    limits: tuple[int, int] | None = None

    def encode(self, value: float) -> bytes:
        """Return the bytes of a value in SI units, rounded to the nearest count.

        Raises:
            SafetyError: the row is read only, or the value is not finite or out of the row's range.
        """
        if self.limits is None:
            raise SafetyError(f"{self.name} is read only; write another register than address {self.address}")
        low, high = self.limits
        count = self.centre + round(value / self.factor) if isfinite(value) else None
        if count is None or not low <= count <= high:
            least, most = ((end - self.centre) * self.factor for end in self.limits)
            unit = f" {self.unit}" if self.unit else ""
            raise SafetyError(
                f"{self.name} cannot be {value!r}{unit}; give a finite value from {least:g} to {most:g}{unit}"
            )
        return count.to_bytes(self.width, "little", signed=self.signed)

    def decode(self, data: bytes) -> float:
        """Return the value [SI] of the row's bytes; an integer for a plain number."""
        return (int.from_bytes(data, "little", signed=self.signed) - self.centre) * self.factor


_KINDS = {(1, False): "B", (1, True): "b", (2, False): "H", (2, True): "h", (4, False): "I", (4, True): "i"}
_COUNTS = (0, servo.COUNTS_PER_TURN - 1)
_GAIN = (0, 16_383)

MODEL_NUMBER = Register("model_number", 0, 2)
FIRMWARE_VERSION = Register("firmware_version", 6, 1)
ID = Register("id", 7, 1, limits=(0, 252))
BAUD_RATE = Register("baud_rate", 8, 1, limits=(0, 6))
RETURN_DELAY = Register(
    "return_delay_time", 9, 1, factor=servo.SECONDS_PER_RETURN_DELAY_COUNT, unit="s", limits=(0, 254)
)
OPERATING_MODE = Register("operating_mode", 11, 1, limits=(0, 16))
HOMING_OFFSET = Register(
    "homing_offset", 20, 4, True, servo.RADIANS_PER_COUNT, "rad", limits=(-1_044_479, 1_044_479)
)
TEMPERATURE_LIMIT = Register("temperature_limit", 31, 1, unit="deg C", limits=(0, 100))
MAX_VOLTAGE_LIMIT = Register("max_voltage_limit", 32, 2, False, servo.VOLTS_PER_COUNT, "V", limits=(31, 70))
MIN_VOLTAGE_LIMIT = Register("min_voltage_limit", 34, 2, False, servo.VOLTS_PER_COUNT, "V", limits=(31, 70))
PWM_LIMIT = Register("pwm_limit", 36, 2, limits=(0, 885))
CURRENT_LIMIT = Register("current_limit", 38, 2, False, servo.AMPERES_PER_COUNT, "A", limits=(0, 1_750))
MAX_POSITION_LIMIT = Register("max_position_limit", 48, 4, limits=_COUNTS)
MIN_POSITION_LIMIT = Register("min_position_limit", 52, 4, limits=_COUNTS)
PWM_SLOPE = Register("pwm_slope", 62, 1, limits=(1, 255))
SHUTDOWN = Register("shutdown", 63, 1, limits=(0, 63))
TORQUE_ENABLE = Register("torque_enable", 64, 1, limits=(0, 1))
LED = Register("led", 65, 1, limits=(0, 1))
HARDWARE_ERROR = Register("hardware_error_status", 70, 1)
POSITION_D_GAIN = Register("position_d_gain", 80, 2, limits=_GAIN)
POSITION_I_GAIN = Register("position_i_gain", 82, 2, limits=_GAIN)
POSITION_P_GAIN = Register("position_p_gain", 84, 2, limits=_GAIN)
BUS_WATCHDOG = Register("bus_watchdog", 98, 1, True, servo.SECONDS_PER_WATCHDOG_COUNT, "s", limits=(0, 127))
GOAL_PWM = Register("goal_pwm", 100, 2, True, limits=(-885, 885))
GOAL_CURRENT = Register("goal_current", 102, 2, True, servo.AMPERES_PER_COUNT, "A", limits=(-1_750, 1_750))
GOAL_VELOCITY = Register(
    "goal_velocity", 104, 4, True, servo.RAD_PER_S_PER_COUNT, "rad/s", limits=(-2_047, 2_047)
)
PROFILE_ACCELERATION = Register("profile_acceleration", 108, 4, limits=(0, 32_767))
PROFILE_VELOCITY = Register("profile_velocity", 112, 4, limits=(0, 32_767))
GOAL_POSITION = Register(
    "goal_position", 116, 4, True, servo.RADIANS_PER_COUNT, "rad", servo.POSITION_CENTRE, _COUNTS
)
REALTIME_TICK = Register("realtime_tick", 120, 2, factor=1e-3, unit="s")
MOVING = Register("moving", 122, 1)
PRESENT_PWM = Register("present_pwm", 124, 2, True)
PRESENT_CURRENT = Register("present_current", 126, 2, True, servo.AMPERES_PER_COUNT, "A")
PRESENT_VELOCITY = Register("present_velocity", 128, 4, True, servo.RAD_PER_S_PER_COUNT, "rad/s")
PRESENT_POSITION = Register(
    "present_position", 132, 4, True, servo.RADIANS_PER_COUNT, "rad", servo.POSITION_CENTRE
)
PRESENT_INPUT_VOLTAGE = Register("present_input_voltage", 144, 2, factor=servo.VOLTS_PER_COUNT, unit="V")
PRESENT_TEMPERATURE = Register("present_temperature", 146, 1, unit="deg C")

TABLE: tuple[Register, ...] = tuple(row for row in dict(globals()).values() if isinstance(row, Register))
"""All rows, by rising address."""


def block_struct(address: int, *rows: Register) -> Struct:
    """Return what takes the counts of rising rows out of one device's bytes from `address` on."""
    layout, end = "<", address
    for row in rows:
        layout += f"{row.address - end}x{_KINDS[row.width, row.signed]}"
        end = row.address + row.width
    return Struct(layout)


_ERROR_BITS = {
    0x20: "overload",
    0x10: "electrical shock",
    0x08: "motor encoder",
    0x04: "overheating",
    0x01: "input voltage",
}
"""Bits of the X series' hardware error status and shutdown mask."""


def hardware_errors(value: int) -> tuple[str, ...]:
    """Return the names of the bits set in a hardware error status or shutdown mask."""
    names = [name for bit, name in _ERROR_BITS.items() if value & bit]
    unknown = value & ~sum(_ERROR_BITS)
    return (*names, f"unknown bits {unknown:#04x}") if unknown else tuple(names)


INPUT_VOLTAGE = 0x01
CHARGED_PACK = frozenset(hardware_errors(INPUT_VOLTAGE & ~servo.SHUTDOWN_MASK))
"""Names that are no fault on a duck: its pack, when charged, is above the servos' limit of 7.0 V, which makes
them report this for good, and none of them switches off for it."""


def explain_shutdown(mask: int) -> str:
    """Return in words which faults make a servo with this shutdown mask switch its torque off."""
    ignored = [name for bit, name in _ERROR_BITS.items() if not mask & bit]
    return f"trips on {_listing(hardware_errors(mask))}; does not trip on {_listing(tuple(ignored))}"


def _listing(names: tuple[str, ...]) -> str:
    return " + ".join(names) or "nothing"
