"""The wire between the host and emulated devices: instruction in, reply bytes out. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from firmware_bridge import protocol
from firmware_bridge.emulated_devices import Device
from firmware_bridge.protocol import BROADCAST_ID, Block, Instruction, Packet

ReplyFilter = Callable[[bytes], bytes | None]
"""Takes each reply and returns what arrives instead; None for nothing."""
_INSTRUCTION_ERROR, _LENGTH_ERROR = 2, 5


class Wire:
    """Devices on one wire, in the order they were plugged in.

    Attributes:
        devices: the devices.
        filter: applied to each reply before it reaches the host.
    """

    def __init__(self, devices: Iterable[Device]) -> None:
        self.devices = list(devices)
        self.filter: ReplyFilter | None = None

    def answer(self, packet: Packet) -> bytes:
        """Return the bytes that reach the host in answer to a packet."""
        if packet.instruction == Instruction.STATUS:
            return b""
        if packet.instruction == Instruction.FAST_SYNC_READ:
            replies = [self._fast_sync_read(packet.parameters)]
        elif packet.instruction == Instruction.SYNC_READ:
            address, length, asked = _sync_read_request(packet.parameters)
            replies = [self._together(i, lambda device: _read(device, address, length)) for i in asked]
        elif packet.instruction == Instruction.SYNC_WRITE:
            self._sync_write(packet.parameters)
            replies = []
        elif packet.id == BROADCAST_ID:
            ids = sorted({device.id for device in self.devices})
            replies = [self._together(i, lambda device: _single(device, packet)) for i in ids]
            if packet.instruction != Instruction.PING:
                replies = []  # only a ping to all is answered
        else:
            replies = [self._together(packet.id, lambda device: _single(device, packet))]
        return b"".join(self._filtered(reply) for reply in replies if reply)

    def at(self, device_id: int) -> list[Device]:
        """Return the devices with this id: none, one, or two that will talk at once."""
        return [device for device in self.devices if device.id == device_id]

    def _filtered(self, reply: bytes) -> bytes:
        return ((self.filter(reply) if self.filter else reply) or b"") if reply else b""

    def _together(self, device_id: int, reply: Callable[[Device], bytes]) -> bytes:
        return _overlap([reply(device) for device in self.at(device_id)])

    def _fast_sync_read(self, parameters: bytes) -> bytes:
        """Return one packet made by all devices asked, up to the first that does not take part."""
        address, length, ids = _sync_read_request(parameters)
        if 1 + len(ids) * (length + protocol.FAST_BLOCK_OVERHEAD) > 0xFFFF:
            return b""  # no length field could announce such a reply
        blocks: dict[int, Block] = {}
        doubled: dict[int, Block] = {}
        for i in ids:
            devices = self.at(i)
            if not devices or not all(device.knows_fast_sync_read for device in devices):
                break
            answers = [device.read(address, length) for device in devices]
            parts = [
                Block(error | device.alert, data.ljust(length, b"\0"))
                for device, (error, data) in zip(devices, answers, strict=True)
            ]
            blocks[i] = parts[0]
            doubled[i] = parts[-1]
        if not blocks:
            return b""
        reply = protocol.fast_reply(blocks, len(ids), length)
        if doubled == blocks:
            return reply
        return _overlap([reply, protocol.fast_reply(doubled, len(ids), length)])

    def _sync_write(self, parameters: bytes) -> None:
        if len(parameters) < 4:
            return
        address, length = _word(parameters, 0), _word(parameters, 2)
        for start in range(4, len(parameters) - length, length + 1):
            for device in self.at(parameters[start]):
                device.write(address, parameters[start + 1 : start + 1 + length])


def _single(device: Device, packet: Packet) -> bytes:
    """Let one device carry out an instruction and return its status packet."""
    parameters = packet.parameters
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
    return protocol.status(device.id, error | device.alert, data)


def _read(device: Device, address: int, length: int) -> bytes:
    error, data = device.read(address, length)
    return protocol.status(device.id, error | device.alert, data)


def _sync_read_request(parameters: bytes) -> tuple[int, int, bytes]:
    if len(parameters) < 4:
        return 0, 0, b""
    return _word(parameters, 0), _word(parameters, 2), parameters[4:]


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
