"""The wire between the host and emulated devices: instruction in, replies out. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from firmware_bridge.emulator.device import Device
from firmware_bridge.wire import protocol
from firmware_bridge.wire.protocol import BROADCAST_ID, Block, Instruction, Packet

ReplyFilter = Callable[[bytes], bytes | None]
"""Takes each reply and returns what arrives instead; None for nothing."""
_INSTRUCTION_ERROR, _LENGTH_ERROR = 2, 5

Listeners = Mapping[int, Sequence[Device]]
"""The devices that heard an instruction, by id."""


class Reply(NamedTuple):
    """What a device, or several at once, put on the wire.

    Attributes:
        data: the bytes.
        delay_s: time the wire was quiet before them [s].
        late_s: time they take longer to reach the host, while the wire is free again [s].
    """

    data: bytes
    delay_s: float = 0.0
    late_s: float = 0.0


class SyncRead(NamedTuple):
    """What a sync read or a fast one asks for."""

    address: int
    length: int
    ids: bytes

    @classmethod
    def of(cls, parameters: bytes) -> SyncRead:
        """Take an instruction's parameters apart; too few ask nobody."""
        if len(parameters) < 4:
            return cls(0, 0, b"")
        return cls(_word(parameters, 0), _word(parameters, 2), parameters[4:])


def encode(packet: Packet) -> bytes:
    """Return the bytes a packet had on the wire, whatever its id."""
    head = protocol.HEADER + bytes([packet.id])
    body = protocol.stuff(bytes([packet.instruction]) + packet.parameters)
    head += (len(body) + 2).to_bytes(2, "little") + body
    return head + protocol.crc16(head).to_bytes(2, "little")


class Wire:
    """Devices on one wire, in the order they were plugged in.

    Attributes:
        devices: the devices.
        filter: applied to each reply before it reaches the host.
    """

    def __init__(self, devices: Iterable[Device]) -> None:
        self.devices = list(devices)
        self.filter: ReplyFilter | None = None

    def answer(self, packet: Packet, baud: int | None = None) -> bytes:
        """Return the bytes that reach the host in answer to a packet; see `exchange`."""
        return b"".join(reply.data for reply in self.exchange(packet, baud))

    def exchange(self, packet: Packet, baud: int | None = None) -> list[Reply]:
        """Let the devices hear a packet, and return their replies.

        Args:
            packet: what the host sent.
            baud: its speed [1/s], at which a device must listen to hear it; None is heard by all.
        """
        if packet.instruction == Instruction.STATUS:
            return []
        heard: dict[int, list[Device]] = {}
        for device in self.devices:
            if device.hears(baud):
                device.hear()
                heard.setdefault(device.id, []).append(device)
        replies = [self._filtered(reply) for reply in _replies(packet, heard)]
        return [reply for reply in replies if reply.data]

    def at(self, device_id: int) -> list[Device]:
        """Return the devices with this id: none, one, or two that will talk at once."""
        return [device for device in self.devices if device.id == device_id]

    def _filtered(self, reply: Reply) -> Reply:
        if self.filter is None or not reply.data:
            return reply
        return reply._replace(data=self.filter(reply.data) or b"")


def _replies(packet: Packet, heard: Listeners) -> list[Reply]:
    """Carry a packet out and return a reply for each id that answers, perhaps an empty one."""
    if packet.instruction == Instruction.FAST_SYNC_READ:
        return [_fast_sync_read(SyncRead.of(packet.parameters), heard)]
    if packet.instruction == Instruction.SYNC_READ:
        asked = SyncRead.of(packet.parameters)
        return [_together(i, heard, lambda device: _read(device, *asked[:2])) for i in asked.ids]
    if packet.instruction == Instruction.SYNC_WRITE:
        _sync_write(packet.parameters, heard)
        return []
    ids = sorted(heard) if packet.id == BROADCAST_ID else [packet.id]
    replies = [_together(i, heard, lambda device: _single(device, packet)) for i in ids]
    # Of the instructions to all, only a ping is answered.
    return replies if packet.id != BROADCAST_ID or packet.instruction == Instruction.PING else []


def _together(device_id: int, heard: Listeners, answer: Callable[[Device], bytes]) -> Reply:
    devices = heard.get(device_id, ())
    # A device answers with the id and at the speed at which it was asked, whatever it was told to become.
    delay = max((device.return_delay for device in devices), default=0.0)
    return Reply(_overlap([answer(device) for device in devices]), delay)


def _fast_sync_read(asked: SyncRead, heard: Listeners) -> Reply:
    """Return one packet made by all devices asked, up to the first that does not take part."""
    length, ids = asked.length, asked.ids
    if 1 + len(ids) * (length + protocol.FAST_BLOCK_OVERHEAD) > 0xFFFF:
        return Reply(b"")  # no length field could announce such a reply
    blocks: dict[int, Block] = {}
    doubled: dict[int, Block] = {}
    delay = 0.0
    for i in ids:
        devices = heard.get(i, ())
        if not devices or not all(device.knows_fast_sync_read for device in devices):
            break
        parts = [_block(device, asked.address, length) for device in devices]
        blocks[i], doubled[i] = parts[0], parts[-1]
        delay += max(device.return_delay for device in devices)
    if not blocks:
        return Reply(b"")
    reply = protocol.fast_reply(blocks, len(ids), length)
    if doubled != blocks:
        reply = _overlap([reply, protocol.fast_reply(doubled, len(ids), length)])
    return Reply(reply, delay)


def _block(device: Device, address: int, length: int) -> Block:
    error, data = device.read(address, length)
    return Block(error | device.alert, data.ljust(length, b"\0"))


def _sync_write(parameters: bytes, heard: Listeners) -> None:
    if len(parameters) < 4:
        return
    address, length = _word(parameters, 0), _word(parameters, 2)
    for start in range(4, len(parameters) - length, length + 1):
        for device in heard.get(parameters[start], ()):
            device.write(address, parameters[start + 1 : start + 1 + length])


def _single(device: Device, packet: Packet) -> bytes:
    """Let one device carry out an instruction and return its status packet."""
    parameters, own_id = packet.parameters, device.id
    error, data = _INSTRUCTION_ERROR, b""
    if packet.instruction == Instruction.PING:
        error, data = 0, bytes((*device.memory[0:2], device.memory[6]))
    elif packet.instruction == Instruction.READ:
        if len(parameters) != 4:
            error = _LENGTH_ERROR
        else:
            return _read(device, _word(parameters, 0), _word(parameters, 2))
    elif packet.instruction == Instruction.WRITE:
        error = device.write(_word(parameters, 0), parameters[2:]) if len(parameters) > 2 else _LENGTH_ERROR
    elif packet.instruction == Instruction.REBOOT:
        device.reboot()
        error = 0
    return protocol.status(own_id, error | device.alert, data)


def _read(device: Device, address: int, length: int) -> bytes:
    error, data = device.read(address, length)
    return protocol.status(device.id, error | device.alert, data)


def _word(data: bytes, start: int) -> int:
    return int.from_bytes(data[start : start + 2], "little")


def _overlap(replies: list[bytes]) -> bytes:
    """Return what a line carries that several devices drive at once: a low bit wins over a high one."""
    if len(replies) < 2:
        return replies[0] if replies else b""
    size = max(map(len, replies))
    joined = (1 << 8 * size) - 1
    for reply in replies:
        joined &= int.from_bytes(reply.ljust(size, b"\xff"), "big")
    return joined.to_bytes(size, "big")
