"""Transactions on the servo bus: what is asked, asked once more, given up, and in which form."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from firmware_bridge.wire import protocol
from firmware_bridge.wire.bus_stats import BusStats
from firmware_bridge.wire.port import Port
from firmware_bridge.wire.protocol import Block
from firmware_bridge.wire.registers import MODEL_NUMBER, Register
from firmware_bridge.wire.transport import Question, Transport, question, refusal
from hardware import servo
from hardware.errors import BusTimeoutError, DeviceError

SCAN_WINDOW_S = 0.8
"""Time in which devices answer a broadcast ping [s]: 3 ms for each of 252 ids, as ROBOTIS' own tools wait."""
FAST_FAILURES = 3
"""Fast sync reads in a row that must stop at the same device before plain ones are used instead."""

_log = logging.getLogger(__name__)


class Found(NamedTuple):
    """A device that answered a broadcast ping."""

    id: int
    model: int
    firmware: int


class Bus:
    """Dynamixel devices on one wire.

    Args:
        port: the wire.
        baud: its speed [1/s].
        return_delay: time each device waits before it answers [s]; 0 on a duck that passed the handshake.
    """

    def __init__(self, port: Port, baud: int = servo.BAUD, return_delay: float = 0.0) -> None:
        self._transport = Transport(port, baud, return_delay)
        self._no_fast_read: int | None = None
        self._suspect: tuple[int, int] = (-1, 0)

    @property
    def stats(self) -> BusStats:
        """What went wrong so far."""
        return self._transport.stats

    def reply_time(self, sent: int, received: int, answers: int = 1) -> float:
        """Return the least time [s] for `sent` bytes out and `received` bytes back from `answers` devices."""
        return self._transport.reply_time(sent, received, answers)

    def ping(self, device: int) -> tuple[int, int]:
        """Return model number and firmware version of a device.

        Raises:
            BusTimeoutError: it does not answer.
            DeviceError: it answers with an error.
        """
        data = self._acknowledged(protocol.ping(device), device, 3, "ping")
        return int.from_bytes(data[:2], "little"), data[2]

    def scan(self) -> list[Found]:
        """Return every device that answers a broadcast ping within 0.8 s, a doubled id perhaps twice."""
        answers = self._transport.ask_all(protocol.ping(), SCAN_WINDOW_S)
        return [
            Found(a.id, int.from_bytes(a.data[:2], "little"), a.data[2]) for a in answers if len(a.data) == 3
        ]

    def read(self, device: int, register: Register) -> float:
        """Return a register's value [SI]; an integer for a plain number.

        Raises:
            BusTimeoutError: the device does not answer.
            DeviceError: it answers with an error.
        """
        packet = protocol.read(device, register.address, register.width)
        return register.decode(self._acknowledged(packet, device, register.width, f"read of {register.name}"))

    def write(self, device: int, register: Register, value: float) -> None:
        """Write a register [SI] and wait for the device's acknowledgement.

        Raises:
            SafetyError: the value does not fit the register.
            BusTimeoutError: the device does not answer.
            DeviceError: it answers with an error.
        """
        self.write_bytes(device, register.address, register.encode(value), register.name)

    def write_bytes(self, device: int, address: int, data: bytes, what: str) -> None:
        """Write bytes from an address on, called `what` in messages, and wait for the acknowledgement.

        Raises:
            BusTimeoutError: the device does not answer.
            DeviceError: it answers with an error.
        """
        self._acknowledged(protocol.write(device, address, data), device, 0, f"write of {what}")

    def reboot(self, device: int) -> None:
        """Restart a device, which clears a latched shutdown and its RAM registers.

        Raises:
            BusTimeoutError: it does not answer.
            DeviceError: it answers with an error.
        """
        self._acknowledged(protocol.reboot(device), device, 0, "reboot")

    def sync_write(self, register: Register, values: Mapping[int, float]) -> None:
        """Write a register [SI] of many devices with one packet, which no device acknowledges.

        Raises:
            SafetyError: a value does not fit the register; nothing is sent.
        """
        data = {device: register.encode(value) for device, value in values.items()}
        self.sync_write_bytes(register.address, data)

    def sync_write_bytes(self, address: int, data: Mapping[int, bytes]) -> None:
        """Write bytes of one length from an address on to many devices with one packet."""
        self._transport.send(protocol.sync_write(address, data))

    def sync_write_rows(self, address: int, length: int, rows: bytes) -> None:
        """Do the same with bytes that already are rows of an id and its data, in a tick that has no time."""
        self._transport.send(protocol.sync_write_rows(address, length, rows))

    def sync_read(
        self, address: int, length: int, devices: Sequence[int], deadline: float | None = None
    ) -> dict[int, Block]:
        """Read the same bytes from many devices; those that miss the first try are asked once more.

        Args:
            address: first byte.
            length: bytes from each device.
            devices: ids.
            deadline: monotonic time by which it returns or raises [s]. Devices are asked again only if their
                answers can be there by then. Without one there is always time.

        Returns:
            Error byte and data by id, in the order of `devices`. An alert bit does not spoil the data.

        Raises:
            BusTimeoutError: names the ids that gave no good answer, or says that there is no time to ask.
        """
        return self._read(False, address, length, devices, deadline)

    def sync_read_available(self, address: int, length: int, devices: Sequence[int]) -> dict[int, Block]:
        """Do a sync read, with its retry, and leave out the devices that gave no good answer."""
        blocks = self._answers(question(False, address, length, self._transport.turned(devices)), None)
        return {device: blocks[device] for device in devices if device in blocks}

    def fast_sync_read(
        self, address: int, length: int, devices: Sequence[int], deadline: float | None = None
    ) -> dict[int, Block]:
        """Do a sync read in which all devices share one reply packet.

        Takes, returns and raises what `sync_read` does. A device without this instruction is silent and
        silences those after it. Whoever misses is asked again by a plain sync read. If that keeps helping the
        same device, plain sync reads are used from then on.
        """
        return self._read(self._no_fast_read is None, address, length, devices, deadline)

    def read_if_room(
        self, address: int, length: int, devices: Sequence[int], deadline: float
    ) -> dict[int, Block] | None:
        """Do one sync read, fast where that works, if its answers can be there by a deadline [s].

        Returns:
            What `sync_read` does, without the devices that gave no good answer; None if there is no room.
        """
        asked = question(self._no_fast_read is None, address, length, self._transport.turned(devices))
        if not self._transport.has_room(asked, deadline):
            return None
        blocks = self._transport.ask(asked, deadline)
        missing = [device for device in devices if device not in blocks]
        if missing:
            self.stats.count_try("timeout", missing)
        return blocks

    def models(self, devices: Sequence[int]) -> dict[int, int]:
        """Return the model number of each of these devices that answers."""
        blocks = self.sync_read_available(MODEL_NUMBER.address, MODEL_NUMBER.width, devices)
        return {device: int(MODEL_NUMBER.decode(block.data)) for device, block in blocks.items()}

    def census(self, device: int, address: int, length: int) -> tuple[int, int]:
        """Return how many whole and how many damaged answers one read brings: (1, 0) from a sound device.

        Two devices with one id answer at once; if what they say differs, the answer is damaged or double.
        """
        damaged = self.stats.crc + self.stats.half
        whole = self._transport.ask_rivals(protocol.read(device, address, length), device, length)
        return len(whole), self.stats.crc + self.stats.half - damaged

    def _acknowledged(self, packet: bytes, device: int, length: int, what: str) -> bytes:
        """Send an instruction to one device, twice if need be, and return the data it answers."""
        for attempt in (0, 1):
            if attempt:
                self.stats.count("retry", device)
            answer = self._transport.ask_one(packet, device, length)
            if answer is None:
                self.stats.count("timeout", device)
                continue
            code = refusal(answer.error)
            if code == 0:
                return answer.data
            self.stats.count("refused", device)
            if code != protocol.CRC_ERROR:
                name = protocol.ERROR_NAMES.get(code, "an unknown error")
                raise DeviceError(
                    f"device {device} refused the {what}: {name} (code {code}); check its model"
                )
        raise BusTimeoutError(
            f"device {device} gave no good answer to the {what}, twice; check its id, cable and power"
        )

    def _read(
        self, fast: bool, address: int, length: int, devices: Sequence[int], deadline: float | None
    ) -> dict[int, Block]:
        asked = question(fast, address, length, self._transport.turned(devices))
        if not self._transport.has_room(asked, deadline):
            raise BusTimeoutError(
                f"no time left to read address {address} of {len(devices)} devices, which takes "
                f"{self._transport.time_of(asked) * 1e3:.1f} ms; start it earlier in the tick"
            )
        blocks = self._answers(asked, deadline)
        missing = [str(device) for device in devices if device not in blocks]
        if missing:
            raise BusTimeoutError(
                f"no good answer in time from ids {', '.join(missing)} to the read at address {address}; "
                "check ids, cables and power"
            )
        return {device: blocks[device] for device in devices}

    def _answers(self, asked: Question, deadline: float | None) -> dict[int, Block]:
        """Ask, and once more, plainly, those that miss, if there is room for it; return the good answers."""
        first = self._transport.ask(asked, deadline)
        missing = tuple(device for device in asked.devices if device not in first)
        if not missing:
            self._suspect = (-1, 0) if asked.fast else self._suspect
            return first
        self.stats.count_try("timeout", missing)
        again = question(False, asked.address, asked.length, missing)
        if not self._transport.has_room(again, deadline):
            return first
        self.stats.count_try("retry", missing)
        second = self._transport.ask(again, deadline)
        silent = [device for device in missing if device not in second]
        if silent:
            self.stats.count_try("timeout", silent)
        elif asked.fast:
            self._judge_fast_read(tuple(first), asked.devices)
        return {**first, **second}

    def _judge_fast_read(self, heard: tuple[int, ...], asked: tuple[int, ...]) -> None:
        """Give fast sync reads up when one device, in any order, always silences itself and those after it.

        Args:
            heard: ids that gave a good answer to a fast read; plain ones brought the rest.
            asked: ids in the order asked.
        """
        device, failures = self._suspect
        if heard != asked[: len(heard)]:
            self._suspect = (-1, 0)  # an answer was damaged, which tells nothing of its device
            return
        silent = asked[len(heard)]
        self._suspect = (silent, failures + 1 if silent == device else 1)
        if self._suspect[1] >= FAST_FAILURES:
            self._no_fast_read = silent
            _log.warning(
                "device %d does not answer fast sync reads (an XL330 needs firmware 46); using plain ones",
                silent,
            )
