"""Transactions on the servo bus: deadlines, one bounded retry, and counters of what went wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from firmware_bridge import protocol
from firmware_bridge.port import BITS_PER_BYTE, Port
from firmware_bridge.protocol import Block, Status
from firmware_bridge.registers import Register
from hardware import servo
from hardware.errors import BusTimeoutError, DeviceError

HOST_MARGIN_S = 0.005
"""Time a reply to a sync read may come later than its bytes need on the wire [s].

Covers two 1 ms USB frames and a late wake-up of this process or of an emulator behind a pseudo-terminal. A
read of the whole duck that fails and its retry then still end inside one control period of 20 ms.
"""
ACK_MARGIN_S = 0.020
"""The same for acknowledged instructions [s], which are not part of a tick and may be waited for."""
SCAN_WINDOW_S = 0.8
"""Time in which devices answer a broadcast ping [s]: 3 ms for each of 252 ids, as ROBOTIS' own tools wait."""
FAST_FAILURES = 3
"""Fast sync reads in a row that must stop at the same device before plain ones are used instead."""

_log = logging.getLogger(__name__)


@dataclass
class BusStats(protocol.Discarded):
    """Counts since the bus was made, with those of `Discarded`.

    Attributes:
        timeout: transactions that one or more devices did not answer, or not with a good packet.
        retry: transactions sent a second time.
    """

    timeout: int = 0
    retry: int = 0


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
        self.stats = BusStats()
        self._port = port
        self._byte_time = BITS_PER_BYTE / baud
        self._return_delay = return_delay
        self._no_fast_read: int | None = None
        self._suspect: tuple[int, int] = (-1, 0)

    def reply_time(self, sent: int, received: int, answers: int = 1) -> float:
        """Return the least time [s] for `sent` bytes out and `received` bytes back from `answers` devices."""
        return (sent + received) * self._byte_time + answers * self._return_delay

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
        deadline = self._send(protocol.ping(), 0, 0, SCAN_WINDOW_S)
        parser = protocol.StatusParser(range(protocol.MAX_ID + 1), self.stats)
        answers: list[Status] = []
        while data := self._port.read(protocol.STATUS_OVERHEAD, deadline):
            answers += parser.feed(data)
            if monotonic() >= deadline:
                break
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
        packet = protocol.write(device, register.address, register.encode(value))
        self._acknowledged(packet, device, 0, f"write of {register.name}")

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
        self._port.write(protocol.sync_write(register.address, data))

    def sync_read(self, address: int, length: int, devices: Sequence[int]) -> dict[int, Block]:
        """Read the same bytes from many devices; those that miss the first try are asked once more.

        Args:
            address: first byte.
            length: bytes from each device.
            devices: ids.

        Returns:
            Error byte and data by id, in the order of `devices`. An alert bit does not spoil the data.

        Raises:
            BusTimeoutError: names the ids that gave no good answer in two tries.
        """
        return self._whole(self.sync_read_available(address, length, devices), devices, address)

    def sync_read_available(self, address: int, length: int, devices: Sequence[int]) -> dict[int, Block]:
        """Do a sync read, with its retry, and leave out the devices that gave no good answer."""
        return self._retried(self._sync_read_once(address, length, devices), address, length, devices)

    def fast_sync_read(self, address: int, length: int, devices: Sequence[int]) -> dict[int, Block]:
        """Do a sync read in which all devices share one reply packet.

        Takes and returns what `sync_read` does. A device without this instruction is silent and silences
        those after it. Whoever misses is asked again by a plain sync read. If that keeps helping the same
        device, plain sync reads are used from then on.

        Raises:
            BusTimeoutError: names the ids that gave no good answer in two tries.
        """
        if self._no_fast_read is not None:
            return self.sync_read(address, length, devices)
        first = self._fast_sync_read_once(address, length, devices)
        blocks = self._whole(self._retried(first, address, length, devices), devices, address)
        self._judge_fast_read(next((device for device in devices if device not in first), None))
        return blocks

    def census(self, device: int, address: int, length: int) -> tuple[int, int]:
        """Return how many whole and how many damaged answers one read brings: (1, 0) from a sound device.

        Two devices with one id answer at once; if what they say differs, the answer is damaged or double.
        """
        damaged = self.stats.crc
        packet = protocol.read(device, address, length)
        size = length + protocol.STATUS_OVERHEAD
        deadline = self._send(packet, 2 * size, 1, HOST_MARGIN_S)
        parser = protocol.StatusParser((device,), self.stats)
        whole = parser.feed(self._port.read(len(packet) + 2 * size, deadline))
        return len(whole), self.stats.crc - damaged

    def _acknowledged(self, packet: bytes, device: int, length: int, what: str) -> bytes:
        """Send an instruction to one device, twice if need be, and return the data it answers."""
        for attempt in (0, 1):
            self.stats.retry += attempt
            answer = self._collect(packet, length, (device,), ACK_MARGIN_S).get(device)
            if answer is None:
                self.stats.timeout += 1
                continue
            code = _refused(answer.error)
            if code == 0:
                return answer.data
            if code != protocol.CRC_ERROR:
                name = protocol.ERROR_NAMES.get(code, "an unknown error")
                raise DeviceError(
                    f"device {device} refused the {what}: {name} (code {code}); check its model"
                )
        raise BusTimeoutError(
            f"device {device} gave no good answer to the {what}, twice; check its id, cable and power"
        )

    def _sync_read_once(self, address: int, length: int, devices: Sequence[int]) -> dict[int, Block]:
        packet = protocol.sync_read(address, length, devices)
        answers = self._collect(packet, length, devices, HOST_MARGIN_S)
        return {
            device: Block(answers[device].error, answers[device].data)
            for device in devices
            if device in answers and not _refused(answers[device].error)
        }

    def _fast_sync_read_once(self, address: int, length: int, devices: Sequence[int]) -> dict[int, Block]:
        packet = protocol.fast_sync_read(address, length, devices)
        size = protocol.FAST_OVERHEAD + len(devices) * (length + protocol.FAST_BLOCK_OVERHEAD)
        prefix = protocol.fast_prefix(len(devices), length)
        deadline = self._send(packet, size, len(devices), HOST_MARGIN_S)
        buffer = bytearray()
        missing = size
        while missing > 0 and (data := self._port.read(missing, deadline)):
            buffer += data
            missing = size + max(0, buffer.find(prefix)) - len(buffer)
            if monotonic() >= deadline:
                break
        blocks = protocol.parse_fast_sync_read(buffer, devices, length, self.stats)
        return {device: block for device, block in blocks.items() if not _refused(block.error)}

    def _send(self, packet: bytes, received: int, answers: int, margin: float) -> float:
        """Send an instruction and return until when a reply of so many bytes may come."""
        self._port.flush_input()
        self._port.write(packet)
        return monotonic() + self.reply_time(len(packet), received, answers) + margin

    def _collect(
        self, packet: bytes, length: int, devices: Sequence[int], margin: float
    ) -> dict[int, Status]:
        """Send an instruction and gather the first good answer of each device before the deadline."""
        size = length + protocol.STATUS_OVERHEAD
        deadline = self._send(packet, size * len(devices), len(devices), margin)
        parser = protocol.StatusParser(devices, self.stats)
        answers: dict[int, Status] = {}
        while len(answers) < len(devices):
            wanted = size * (len(devices) - len(answers)) - parser.pending
            data = self._port.read(max(1, wanted), deadline)
            for answer in parser.feed(data):
                if len(answer.data) == length or _refused(answer.error):
                    answers.setdefault(answer.id, answer)
                else:
                    self.stats.foreign += 1
            if not data or monotonic() >= deadline:
                break
        return answers

    def _retried(
        self, blocks: dict[int, Block], address: int, length: int, devices: Sequence[int]
    ) -> dict[int, Block]:
        """Complete a sync read's blocks by asking once more those that miss, in the order of `devices`."""
        missing = [device for device in devices if device not in blocks]
        if not missing:
            return blocks
        self.stats.timeout += 1
        self.stats.retry += 1
        second = self._sync_read_once(address, length, missing)
        self.stats.timeout += len(second) < len(missing)
        both = {**blocks, **second}
        return {device: both[device] for device in devices if device in both}

    @staticmethod
    def _whole(blocks: dict[int, Block], devices: Sequence[int], address: int) -> dict[int, Block]:
        missing = [device for device in devices if device not in blocks]
        if missing:
            raise BusTimeoutError(
                f"no good answer from {_ids(missing)} to the read at address {address}, twice; "
                "check ids, cables and power"
            )
        return blocks

    def _judge_fast_read(self, stopped_at: int | None) -> None:
        """Note at which device a fast sync read stopped, and give fast ones up when it is always the same."""
        device, failures = self._suspect
        failures = failures + 1 if stopped_at == device else 1
        self._suspect = (-1, 0) if stopped_at is None else (stopped_at, failures)
        if stopped_at is not None and failures >= FAST_FAILURES:
            self._no_fast_read = stopped_at
            _log.warning(
                "device %d does not answer fast sync reads (an XL330 needs firmware 46); using plain ones",
                stopped_at,
            )


def _refused(error: int) -> int:
    """Return the error code in an error byte, 0 for none; the alert bit is none."""
    return error & ~protocol.ALERT_BIT


def _ids(devices: Iterable[int]) -> str:
    return "ids " + ", ".join(map(str, devices))
