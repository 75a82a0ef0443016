"""What every emulated device has: a register memory, a supply, and times when it hears nothing. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from firmware_bridge.wire import registers
from firmware_bridge.wire.registers import Register
from hardware import servo

MEMORY_SIZE = 256
ACCESS_ERROR = 7
"""Error number for an address that is not there or may not be written."""
BOOT_S = 0.3
"""Time a device hears nothing after a restart [s]. The manual gives none; the robot's own runtime waits 0.5 s
before it speaks to a servo that it restarted."""
EEPROM_WRITE_S = 0.015
"""Time a device hears nothing after a write to its EEPROM [s]. The manual gives none; the robot's own runtime
waits 20 ms after each."""

_BAUDS = {code: baud for baud, code in servo.BAUD_CODES.items()}


class Device:
    """A device with a register memory, which can be written nowhere.

    Args:
        device_id: its id.
        model: number it answers to a ping.
        firmware: version it answers to a ping.
        clock: time base [s].

    Attributes:
        memory: its registers.
        knows_fast_sync_read: whether it answers instruction 0x8A, as an XL330 does from firmware 46 on.
        silent: neither hears nor answers, as behind a broken data wire.
        forced: counts that registers hold whatever was measured; faults set them.
        boot_s: time it hears nothing after a restart [s].
        eeprom_write_s: time it hears nothing after a write to its EEPROM [s].
        eeprom_writes: number of writes to its EEPROM so far.
    """

    def __init__(
        self, device_id: int, model: int, firmware: int, clock: Callable[[], float] = monotonic
    ) -> None:
        self.memory = bytearray(MEMORY_SIZE)
        self.knows_fast_sync_read = True
        self.silent = False
        self.forced: dict[Register, int] = {}
        self.boot_s = BOOT_S
        self.eeprom_write_s = EEPROM_WRITE_S
        self.eeprom_writes = 0
        self._clock = clock
        self._powered = True
        self._born = self._heard = self._deaf_until = clock()
        self.poke(registers.MODEL_NUMBER, model)
        self.poke(registers.FIRMWARE_VERSION, firmware)
        self.poke(registers.ID, device_id)
        self.poke(registers.BAUD_RATE, servo.BAUD_CODES[servo.BAUD])

    @property
    def id(self) -> int:
        """Id on the bus; a write to the id register changes it."""
        return self.memory[registers.ID.address]

    @property
    def baud(self) -> int:
        """Speed at which it hears and answers [1/s], from its baud-rate register."""
        return _BAUDS[self.memory[registers.BAUD_RATE.address]]

    @property
    def return_delay(self) -> float:
        """Time it waits before it answers [s]."""
        return self.memory[registers.RETURN_DELAY.address] * servo.SECONDS_PER_RETURN_DELAY_COUNT

    @property
    def alert(self) -> int:
        """Alert bit of the error byte, set while the device reports a hardware error."""
        return 0

    @property
    def powered(self) -> bool:
        """Whether it has a supply."""
        return self._powered

    def power_down(self) -> None:
        """Take its supply away."""
        self._powered = False

    def power_up(self, ago_s: float = 0.0) -> None:
        """Give its supply back, which makes it start anew; `ago_s` says how long ago [s]."""
        self._powered = True
        self.reboot(ago_s)

    def peek(self, register: Register) -> int:
        """Return a register's count."""
        data = self.memory[register.address : register.address + register.width]
        return int.from_bytes(data, "little", signed=register.signed)

    def poke(self, register: Register, count: int) -> None:
        """Set a register's count, past every access rule."""
        data = int(count).to_bytes(register.width, "little", signed=register.signed)
        self.memory[register.address : register.address + register.width] = data

    def hears(self, baud: int | None) -> bool:
        """Return whether an instruction sent at this speed [1/s] reaches it; None stands for its own."""
        awake = self._powered and not self.silent and self._clock() >= self._deaf_until
        return awake and baud in (None, self.baud)

    def hear(self) -> None:
        """Note that an instruction came by, to this device or to another."""
        self._heard = self._clock()

    def read(self, address: int, length: int) -> tuple[int, bytes]:
        """Return the error number and the bytes that a read brings."""
        if address + length > MEMORY_SIZE:
            return ACCESS_ERROR, b""
        self.refresh()
        return 0, bytes(self.memory[address : address + length])

    def write(self, address: int, data: bytes) -> int:
        """Take in a write and return its error number, 0 when accepted."""
        return ACCESS_ERROR

    def reboot(self, ago_s: float = 0.0) -> None:
        """Start anew, and hear nothing for `boot_s`; `ago_s` says how long ago it did [s]."""
        self._born = self._clock() - ago_s
        self._deaf_until = self._born + self.boot_s

    def refresh(self) -> None:
        """Bring registers that change by themselves up to date."""
        for register, count in self.forced.items():
            self.poke(register, count)
