"""Dynamixel protocol 2.0 as bytes: packets built and parsed by pure functions, without any I/O.

Source: ROBOTIS e-Manual, "DYNAMIXEL Protocol 2.0". A packet is

    FF FF FD 00 | id | length (2) | instruction | parameters | CRC (2)

with `length` counting everything after itself, numbers little-endian, and `FF FF FD` inside instruction
and parameters sent as `FF FF FD FD` (stuffing), so that no header can appear inside a packet. The reply to
a fast sync read is the one exception: see `parse_fast_sync_read`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from firmware_bridge.wire.bus_stats import Discarded
from hardware.errors import ConfigError

HEADER = b"\xff\xff\xfd\x00"
BROADCAST_ID = 0xFE
MAX_ID = 252
MAX_LENGTH = 1024
"""Longest `length` field taken for a packet; the duck's longest packet has about 250 bytes."""
STATUS_OVERHEAD = 11
"""Bytes of a status packet around its data: header, id, length, instruction, error, CRC."""
FAST_OVERHEAD = 8
"""Bytes in front of the first block of a fast sync read's reply: header, id, length, instruction."""
FAST_BLOCK_OVERHEAD = 4
"""Bytes around each device's data in a fast sync read's reply: error, id, CRC."""
ALERT_BIT = 0x80
"""Bit of the error byte that says "read my hardware error status"; the answer itself is good."""
ERROR_NAMES = {
    1: "result fail",
    2: "instruction error",
    3: "CRC error",
    4: "data range error",
    5: "data length error",
    6: "data limit error",
    7: "access error",
}
"""Names of the error byte's lower seven bits, which form a number, not flags."""
CRC_ERROR = 3


class Instruction(IntEnum):
    """Instruction bytes this toolkit sends or answers."""

    PING = 0x01
    READ = 0x02
    WRITE = 0x03
    REBOOT = 0x08
    STATUS = 0x55
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83
    FAST_SYNC_READ = 0x8A


class Packet(NamedTuple):
    """Any packet, its parameters unstuffed."""

    id: int
    instruction: int
    parameters: bytes


class Status(NamedTuple):
    """A device's answer: `error` is its error byte, alert bit included."""

    id: int
    error: int
    data: bytes


class Block(NamedTuple):
    """One device's part in the answer to a sync read: its error byte and its data."""

    error: int
    data: bytes


def _crc_row(byte: int) -> int:
    crc = byte << 8
    for _ in range(8):
        crc = (crc << 1) ^ (0x8005 if crc & 0x8000 else 0)
    return crc & 0xFFFF


_CRC_HIGH = bytes(_crc_row(byte) >> 8 for byte in range(256))
_CRC_LOW = bytes(_crc_row(byte) & 0xFF for byte in range(256))


def crc16(data: bytes | bytearray, crc: int = 0) -> int:
    """Return the CRC-16 (polynomial 0x8005, most significant bit first) of `data`, continuing from `crc`."""
    highs, lows = _CRC_HIGH, _CRC_LOW
    high, low = crc >> 8, crc & 0xFF
    for byte in data:  # a table for two bytes at a time is faster, but not in a tick, which finds caches cold
        row = high ^ byte
        high, low = low ^ highs[row], lows[row]
    return high << 8 | low


_CRC_AFTER_ITSELF = [crc16(bytes((byte, byte))) for byte in range(256)]
"""CRC that ran on over its own two bytes, low one first: they meet it crosswise, so high ^ low tells it."""


def stuff(data: bytes) -> bytes:
    """Escape every `FF FF FD`."""
    return data.replace(b"\xff\xff\xfd", b"\xff\xff\xfd\xfd")


def unstuff(data: bytes) -> bytes:
    """Undo `stuff`."""
    return data.replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")


def packet(device: int, instruction: int, parameters: bytes = b"") -> bytes:
    """Return the bytes of one packet.

    Raises:
        ConfigError: the id is not one, or the packet would be longer than a reader accepts.
    """
    if not (0 <= device <= MAX_ID or device == BROADCAST_ID):
        raise ConfigError(f"{device} is no Dynamixel id; use 0 to {MAX_ID}, or {BROADCAST_ID} for all")
    body = stuff(bytes([instruction]) + parameters)
    if len(body) + 2 > MAX_LENGTH:
        raise ConfigError(f"a packet of {len(body)} bytes is too long; split it below {MAX_LENGTH - 2}")
    head = HEADER + bytes([device]) + _word(len(body) + 2) + body
    return head + _word(crc16(head))


def ping(device: int = BROADCAST_ID) -> bytes:
    """Ask one device, or all, for model number and firmware version."""
    return packet(device, Instruction.PING)


def read(device: int, address: int, length: int) -> bytes:
    """Ask one device for `length` bytes from `address`."""
    return packet(device, Instruction.READ, _word(address) + _word(length))


def write(device: int, address: int, data: bytes) -> bytes:
    """Write bytes from `address` of one device."""
    return packet(device, Instruction.WRITE, _word(address) + data)


def reboot(device: int) -> bytes:
    """Restart one device, which clears a latched shutdown."""
    return packet(device, Instruction.REBOOT)


def sync_read(address: int, length: int, devices: Sequence[int]) -> bytes:
    """Ask many devices for the same bytes; each sends its own status packet."""
    parameters = _word(address) + _word(length) + bytes(devices)
    return packet(BROADCAST_ID, Instruction.SYNC_READ, parameters)


def fast_sync_read(address: int, length: int, devices: Sequence[int]) -> bytes:
    """Ask many devices for the same bytes; together they send one packet."""
    parameters = _word(address) + _word(length) + bytes(devices)
    return packet(BROADCAST_ID, Instruction.FAST_SYNC_READ, parameters)


def sync_write(address: int, data: Mapping[int, bytes]) -> bytes:
    """Write bytes of one length to many devices at once; none answers.

    Raises:
        ConfigError: the data differ in length, or there are none.
    """
    lengths = {len(value) for value in data.values()}
    if len(lengths) != 1:
        raise ConfigError(f"a sync write needs data of one length for at least one id, not {sorted(lengths)}")
    rows = b"".join(bytes([device]) + value for device, value in data.items())
    return sync_write_rows(address, lengths.pop(), rows)


def sync_write_rows(address: int, length: int, rows: bytes) -> bytes:
    """Write to many devices at once: `rows` holds each id and its `length` bytes from `address` on."""
    return packet(BROADCAST_ID, Instruction.SYNC_WRITE, _word(address) + _word(length) + rows)


def status(device: int, error: int = 0, data: bytes = b"") -> bytes:
    """Return the status packet a device sends."""
    return packet(device, Instruction.STATUS, bytes([error]) + data)


def fast_prefix(count: int, length: int) -> bytes:
    """Return the first eight bytes of the reply of `count` devices to a fast sync read of `length` bytes."""
    return _fast_start(count, length)[0]


@lru_cache(maxsize=64)
def _fast_start(count: int, length: int) -> tuple[bytes, int]:
    """Return the prefix of a fast sync read's reply and the CRC over it."""
    total = 1 + count * (length + FAST_BLOCK_OVERHEAD)
    prefix = HEADER + bytes([BROADCAST_ID]) + _word(total) + bytes([Instruction.STATUS])
    return prefix, crc16(prefix)


def fast_reply(blocks: Mapping[int, Block], count: int, length: int) -> bytes:
    """Return the reply that devices give together to a fast sync read.

    Args:
        blocks: the blocks sent, in order; fewer than `count` when a device stays silent.
        count: number of devices asked, which the length field counts.
        length: data bytes of each block.
    """
    reply = bytearray(fast_prefix(count, length))
    crc = crc16(reply)
    for device, (error, data) in blocks.items():
        part = bytes([error, device]) + data
        crc = crc16(part, crc)
        check = _word(crc)
        crc = crc16(check, crc)
        reply += part + check
    return bytes(reply)


def fast_reply_start(buffer: bytes | bytearray, devices: Sequence[int], length: int) -> int:
    """Return where a fast sync read's reply begins, or is to be looked for as long as it is not there.

    A whole reply of the same devices in another order answers an earlier question and is passed over.
    """
    prefix = fast_prefix(len(devices), length)
    block = length + FAST_BLOCK_OVERHEAD
    size = FAST_OVERHEAD + len(devices) * block
    start = 0
    while (found := buffer.find(prefix, start)) >= 0:
        ids = buffer[found + FAST_OVERHEAD + 1 : found + size : block]
        if ids == bytes(devices) or set(ids) != set(devices):
            return found
        start = found + size
    return start


def parse_fast_sync_read(
    buffer: bytes | bytearray, devices: Sequence[int], length: int, discarded: Discarded
) -> dict[int, Block]:
    """Return the good blocks of a fast sync read's reply, by id.

    The reply is one packet from the broadcast id that the devices write one after the other, each a block of
    error, id, data and CRC. It is not stuffed, and each CRC runs on from the header through all bytes before
    it. After a bad block the running value is taken from that block's own CRC, so one flipped byte costs one
    block and not all that follow.

    Args:
        buffer: bytes received, with or without noise, echo or late replies around the reply.
        devices: ids in the order asked.
        length: data bytes of each block.
        discarded: counts all that is no good block of the device whose turn it was.
    """
    prefix, crc = _fast_start(len(devices), length)
    start = fast_reply_start(buffer, devices, length)
    if not buffer.startswith(prefix, start):
        count_strays(buffer, devices, discarded)
        return {}
    blocks: dict[int, Block] = {}
    begin = start + FAST_OVERHEAD
    for device in devices:
        check = begin + length + 2
        if len(buffer) < check + 2:
            if len(buffer) > begin:
                discarded.count("half", device)
            begin = len(buffer)
            break
        low, high = buffer[check], buffer[check + 1]
        if crc16(buffer[begin:check], crc) != high << 8 | low:
            discarded.count("crc", device)
        elif (found := buffer[begin + 1]) != device:
            discarded.count("late" if found in devices else "foreign", found)
        else:
            blocks[device] = Block(buffer[begin], bytes(buffer[begin + 2 : check]))
        crc = _CRC_AFTER_ITSELF[high ^ low]
        begin = check + 2
    for strays in (buffer[:start], buffer[begin:]):
        if strays:
            count_strays(strays, devices, discarded)
    return blocks


class PacketParser:
    """Cuts a stream of bytes into packets, skipping what is none, in time linear in the bytes fed.

    Stuffing keeps headers out of packets, so one inside tells that the packet was cut short, and reading goes
    on there. No byte is checksummed more than twice, whatever arrives.
    """

    def __init__(self, discarded: Discarded) -> None:
        self._buffer = bytearray()
        self._discarded = discarded

    @property
    def pending(self) -> int:
        """Number of bytes kept for a packet that is not whole yet."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray) -> list[Packet]:
        """Take in bytes and return the packets they complete."""
        buffer, discarded = self._buffer, self._discarded
        buffer += data
        packets: list[Packet] = []
        position = 0
        while (found := buffer.find(HEADER, position)) >= 0:
            discarded.noise += found - position
            position = found
            if len(buffer) < position + 7:
                break
            length = int.from_bytes(buffer[position + 5 : position + 7], "little")
            end = position + 7 + length
            if not 3 <= length <= MAX_LENGTH:
                discarded.noise += len(HEADER)
                position += len(HEADER)
            elif (inner := buffer.find(HEADER, position + len(HEADER), min(end - 2, len(buffer)))) >= 0:
                discarded.count("half", buffer[position + 4])
                position = inner
            elif len(buffer) < end:
                break
            elif crc16(buffer[position : end - 2]) != int.from_bytes(buffer[end - 2 : end], "little"):
                discarded.count("crc", buffer[position + 4])
                position += len(HEADER)
            else:
                body = unstuff(bytes(buffer[position + 7 : end - 2]))
                packets.append(Packet(buffer[position + 4], body[0], body[1:]))
                position = end
        else:
            kept = _start_of_header(buffer, position)
            discarded.noise += kept - position
            position = kept
        del buffer[:position]
        return packets

    def end(self) -> None:
        """Count the rest, a packet that will never be whole, and forget it."""
        if self.pending > len(HEADER):
            self._discarded.count("half", self._buffer[len(HEADER)])
        else:
            self._discarded.noise += self.pending
        self._buffer.clear()


class StatusParser:
    """Picks the answers of certain devices out of a stream of bytes, and counts the rest."""

    def __init__(self, devices: Collection[int], discarded: Discarded) -> None:
        self._devices = devices
        self._discarded = discarded
        self._packets = PacketParser(discarded)

    @property
    def pending(self) -> int:
        """Number of bytes kept for an answer that is not whole yet."""
        return self._packets.pending

    def feed(self, data: bytes) -> list[Status]:
        """Take in bytes and return the wanted answers they complete."""
        answers = []
        for device, instruction, parameters in self._packets.feed(data):
            if instruction != Instruction.STATUS:
                self._discarded.count("echo", device)
            elif device not in self._devices or not parameters:
                self._discarded.count("foreign", device)
            else:
                answers.append(Status(device, parameters[0], parameters[1:]))
        return answers

    def end(self) -> None:
        """Count the rest, an answer that will never be whole, and forget it."""
        self._packets.end()


def count_strays(data: bytes | bytearray, devices: Collection[int], discarded: Discarded) -> None:
    """Count what is in bytes without an answer to the question at hand, which was put to `devices`.

    A whole packet of one of them, or of all together, is a late answer.
    """
    parser = PacketParser(discarded)
    for device, instruction, _ in parser.feed(data):
        if instruction != Instruction.STATUS:
            discarded.count("echo", device)
        else:
            late = device == BROADCAST_ID or device in devices
            discarded.count("late" if late else "foreign", device)
    parser.end()


def _start_of_header(buffer: bytearray, position: int) -> int:
    """Return where a header may have begun at the end of the buffer, else the buffer's end."""
    for size in (3, 2, 1):
        if len(buffer) - size >= position and buffer.endswith(HEADER[:size]):
            return len(buffer) - size
    return len(buffer)


def _word(value: int) -> bytes:
    return value.to_bytes(2, "little")
