"""Hostile streams into the parsers: nothing is raised, nothing damaged is taken, nothing whole is lost.

The suite takes a few thousand streams. DUCK_FUZZ_STREAMS=1000000 takes a million, of other seeds.
What a stream holds is known from how it was made, with a CRC that is worked out bit by bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest

from firmware_bridge.wire import protocol
from firmware_bridge.wire.protocol import Block, Discarded, Packet, PacketParser, Status, StatusParser

STREAMS = int(os.environ.get("DUCK_FUZZ_STREAMS", "6000"))
HEADER = b"\xff\xff\xfd\x00"
ASKED = (20, 21, 22, 200)
NASTY = (b"\xff", b"\xff\xff", b"\xff\xff\xfd", b"\xfd", HEADER, b"\xff\xff\xfd\xfd", b"\x00", b"\x55")


def _bitwise(byte: int) -> int:
    register = byte << 8
    for _ in range(8):
        register = (register << 1) ^ (0x18005 if register & 0x8000 else 0)
    return register


CRC_OF_BYTE = [_bitwise(byte) for byte in range(256)]


def crc(data: bytes, register: int = 0) -> int:
    for byte in data:
        register = (register << 8 & 0xFFFF) ^ CRC_OF_BYTE[(register >> 8) ^ byte]
    return register


def frame(packet: Packet) -> bytes:
    """Return a packet's bytes, made apart from the code under test."""
    body = bytes([packet.instruction])
    for byte in packet.parameters:
        body += bytes([byte])
        if body.endswith(b"\xff\xff\xfd"):
            body += b"\xfd"
    head = HEADER + bytes([packet.id]) + (len(body) + 2).to_bytes(2, "little") + body
    return head + crc(head).to_bytes(2, "little")


def some_bytes(chance: Random, most: int) -> bytes:
    return b"".join(
        chance.choice(NASTY) if chance.random() < 0.4 else chance.randbytes(chance.randint(0, 3))
        for _ in range(chance.randint(0, most))
    )


def some_packet(chance: Random) -> Packet:
    instruction = 0x55 if chance.random() < 0.8 else chance.choice((0x01, 0x02, 0x83, 0x8A, 0xFF))
    return Packet(chance.choice((*ASKED, 1, 254, 252)), instruction, some_bytes(chance, 8))


def spoil(chance: Random, data: bytes) -> bytes:
    """Return a frame in which one to three bits, or one stretch of up to sixteen, are wrong."""
    number = int.from_bytes(data, "big")
    size = 8 * len(data)
    if chance.random() < 0.5:
        for bit in chance.sample(range(size), chance.randint(1, 3)):
            number ^= 1 << bit
    else:
        number ^= chance.randint(1, 0xFFFF) << chance.randrange(size - 15)
    return number.to_bytes(len(data), "big")


def false_start(chance: Random) -> bytes:
    """Return a header with any id and a length that promises much, little or nonsense."""
    length = chance.choice((0, 1, 2, 3, 4, 10, 20, 200, 1024, 1025, 65535))
    return HEADER + chance.randbytes(1) + length.to_bytes(2, "little") + some_bytes(chance, 3)


class Stream:
    """Bytes of one hostile conversation, and the packets that are whole in it."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = Random(seed)
        self.data = b""
        self.whole: list[Packet] = []
        self.damaged = 0
        completing = b""
        for _ in range(chance.randint(1, 8)):
            piece, packet, following = self._piece()
            if completing and piece.startswith(completing):
                piece = (
                    bytes([completing[0] ^ 0x55]) + piece
                )  # else it would complete the packet that was cut
            self.data += piece
            self.whole += [packet] if packet else []
            completing = following if piece else completing

    def _piece(self) -> tuple[bytes, Packet | None, bytes]:
        """Return bytes, the packet that is whole in them, and the byte that would complete a cut one."""
        chance = self.chance
        kind = chance.random()
        if kind < 0.2:
            return some_bytes(chance, 6), None, b""
        if kind < 0.35:
            return false_start(chance), None, b""
        packet = some_packet(chance)
        data = frame(packet)
        if kind < 0.6:
            return data, packet, b""
        self.damaged += 1
        if kind < 0.85:
            return spoil(chance, data), None, b""
        cut = chance.randrange(1, len(data))
        return data[:cut], None, data[cut : cut + 1]

    def reads(self) -> Iterator[bytes]:
        """Cut the stream into what one read after another brings."""
        rest = self.data
        while rest:
            size = self.chance.choice((1, 2, 3, 7, 16, len(rest)))
            yield rest[:size]
            rest = rest[size:]


@pytest.fixture
def crc_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of bytes that went through the CRC, in a list of one."""
    counted = [0]
    real = protocol.crc16

    def counting(data: bytes, register: int = 0) -> int:
        counted[0] += len(data)
        return real(data, register)

    monkeypatch.setattr(protocol, "crc16", counting)
    return counted


def seeds() -> range:
    return range(STREAMS // 2) if STREAMS < 10_000 else range(1_000_000_000, 1_000_000_000 + STREAMS // 2)


def luck(damaged: int) -> float:
    """Return how many damaged packets may pass for whole.

    A CRC of 16 bits lets one in 65,536 pass by chance, and more of those whose damage reaches from the data
    into the CRC, because its bytes go out in the wrong order for catching every such stretch.
    """
    return 0 if STREAMS < 10_000 else damaged / 10_000


def test_of_a_hostile_stream_exactly_the_whole_packets_are_taken(crc_bytes: list[int]) -> None:
    passed = damaged = 0
    for seed in seeds():
        stream = Stream(seed)
        packets, statuses = PacketParser(Discarded()), StatusParser(ASKED, Discarded())
        taken: list[Packet] = []
        answers: list[Status] = []
        crc_bytes[0] = 0
        for read in stream.reads():
            taken += packets.feed(read)
            answers += statuses.feed(read)
            assert packets.pending <= protocol.MAX_LENGTH + 7, seed
        assert crc_bytes[0] <= 2 * 2 * len(stream.data), seed
        assert answers == [
            Status(p.id, p.parameters[0], p.parameters[1:])
            for p in taken
            if p.instruction == 0x55 and p.id in ASKED and p.parameters
        ], seed
        damaged += stream.damaged
        if taken != stream.whole:
            strange = [packet for packet in taken if packet not in stream.whole]
            assert strange, seed  # else a whole packet was lost
            assert all(frame(packet) in stream.data for packet in strange), seed
            passed += 1
    assert damaged > STREAMS / 2
    assert passed <= luck(damaged)


def fast_reply(blocks: list[tuple[int, Block]], length: int) -> bytes:
    """Return the reply of many devices to a fast sync read, made apart from the code under test."""
    reply = HEADER + b"\xfe" + (1 + len(blocks) * (length + 4)).to_bytes(2, "little") + b"\x55"
    for device, (error, data) in blocks:
        reply += bytes([error, device]) + data
        reply += crc(reply).to_bytes(2, "little")
    return reply


def test_of_a_hostile_fast_reply_exactly_the_whole_blocks_are_taken(crc_bytes: list[int]) -> None:
    passed = damaged = 0
    for seed in seeds():
        chance = Random(-1 - seed)
        length = chance.choice((1, 2, 4, 12))
        ids = chance.sample(range(253), chance.randint(1, 16))
        blocks = [(i, Block(chance.choice((0, 0, 0x80)), chance.randbytes(length))) for i in ids]
        sent = fast_reply(blocks, length)
        kind = chance.random()
        heard = spoil(chance, sent) if kind < 0.6 else sent
        heard = heard[: chance.randint(0, len(sent))] if kind > 0.8 else heard
        before = chance.choice((b"", frame(Packet(254, 0x8A, bytes(ids))), b"\xff\xff", b"\x00\x17"))
        crc_bytes[0] = 0
        taken = protocol.parse_fast_sync_read(before + heard, ids, length, Discarded())
        assert crc_bytes[0] <= 2 * len(before + heard) + 8, seed
        damaged += heard != sent
        if heard[9 :: length + 4] != bytes(ids) and sorted(heard[9 :: length + 4]) == sorted(ids):
            assert taken == {}, seed  # the ids in another order: by all appearances a late reply
            continue
        passed += any(taken[device] != block for device, block in blocks if device in taken)
        for index, (device, _) in enumerate(blocks):
            begin = 8 + index * (length + 4)
            # Its CRC runs on from the CRC of the block before, or from the beginning.
            needed = slice(begin - 2 if index else 0, begin + length + 4)
            if sent[:8] == heard[:8] and sent[needed] == heard[needed]:
                assert device in taken, seed
    assert damaged > STREAMS / 4
    assert passed <= luck(damaged)


def test_crc_that_completes_a_header_does_not_cut_its_packet_short() -> None:
    whole = bytes.fromhex("FF FF FD 00 14 09 00 55 00 39 E4 00 FF FF FD 00")
    assert crc(whole[:-2]) == 0x00FD
    assert PacketParser(Discarded()).feed(whole) == [Packet(20, 0x55, bytes.fromhex("00 39 E4 00 FF FF"))]


class CountingBuffer(bytearray):
    """Counts the bytes that searches look at."""

    searched = 0

    def find(self, sub: bytes, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        end = len(self) if end is None else end
        found = super().find(sub, start, end)
        CountingBuffer.searched += (end if found < 0 else found + len(sub)) - start
        return found


@pytest.mark.parametrize("size", [4_000, 32_000])
@pytest.mark.parametrize("step", [1, 64, 100_000])
def test_work_grows_no_faster_than_the_stream(size: int, step: int) -> None:
    false = [HEADER + b"\x14" + n.to_bytes(2, "little") + bytes(n % 40) for n in range(3, 1024)]
    stream = (b"".join(false) + b"\xff" * 4_000)[-size:]
    parser = PacketParser(Discarded())
    parser._buffer, CountingBuffer.searched = CountingBuffer(), 0
    for start in range(0, size, step):
        parser.feed(stream[start : start + step])
    # Each read lets the parser look again at what waits to be whole, which is at most the longest packet.
    assert 0 < CountingBuffer.searched <= size * (3 + protocol.MAX_LENGTH / step)
