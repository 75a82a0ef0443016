"""What faults do to a reply on its way to the host: pure functions of the reply and of chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from firmware_bridge.emulator.faults import FaultKind
from firmware_bridge.emulator.wire import Reply, SyncRead
from firmware_bridge.wire import protocol
from firmware_bridge.wire.protocol import MAX_ID, Discarded, Instruction, Packet


class Strike(NamedTuple):
    """A reply that a fault strikes.

    Attributes:
        reply: the reply.
        packet: the instruction that it answers.
        size: the fault's own number.
        chance: the fault's own source of chance.
    """

    reply: Reply
    packet: Packet
    size: float
    chance: np.random.Generator


def _drop(strike: Strike) -> tuple[Reply, ...]:
    return ()


def _delay(strike: Strike) -> tuple[Reply, ...]:
    return (strike.reply._replace(late_s=strike.reply.late_s + strike.size),)


def _flip(strike: Strike) -> tuple[Reply, ...]:
    data = bytearray(strike.reply.data)
    byte, bit = divmod(int(strike.chance.integers(8 * len(data))), 8)
    data[byte] ^= 1 << bit
    return (strike.reply._replace(data=bytes(data)),)


def _truncate(strike: Strike) -> tuple[Reply, ...]:
    data = strike.reply.data
    return (strike.reply._replace(data=data[: strike.chance.integers(len(data))]),)


def _duplicate(strike: Strike) -> tuple[Reply, ...]:
    return (strike.reply, strike.reply)


def _noise(strike: Strike) -> tuple[Reply, ...]:
    noise = strike.chance.bytes(int(strike.size))
    return (strike.reply._replace(data=noise + strike.reply.data),)


def _wrong_id(strike: Strike) -> tuple[Reply, ...]:
    rename = _rename_block if strike.packet.instruction == Instruction.FAST_SYNC_READ else _rename_status
    return (strike.reply._replace(data=rename(strike)),)


def _rename_block(strike: Strike) -> bytes:
    _, length, ids = SyncRead.of(strike.packet.parameters)
    blocks = list(protocol.parse_fast_sync_read(strike.reply.data, ids, length, Discarded()).items())
    if blocks:
        index = int(strike.chance.integers(len(blocks)))
        device, block = blocks[index]
        blocks[index] = _another(device, strike.chance), block
    return protocol.fast_reply(dict(blocks), len(ids), length)


def _rename_status(strike: Strike) -> bytes:
    packets = protocol.PacketParser(Discarded()).feed(strike.reply.data)
    return b"".join(protocol.packet(_another(p.id, strike.chance), *p[1:]) for p in packets)


def _another(device: int, chance: np.random.Generator) -> int:
    """Return an id that is not this one."""
    return (device + int(chance.integers(1, MAX_ID + 1))) % (MAX_ID + 1)


DAMAGES: Mapping[FaultKind, Callable[[Strike], tuple[Reply, ...]]] = {
    FaultKind.DROP: _drop,
    FaultKind.DELAY: _delay,
    FaultKind.FLIP: _flip,
    FaultKind.TRUNCATE: _truncate,
    FaultKind.DUPLICATE: _duplicate,
    FaultKind.NOISE: _noise,
    FaultKind.WRONG_ID: _wrong_id,
}
"""What becomes of a reply that a fault of each kind strikes."""
