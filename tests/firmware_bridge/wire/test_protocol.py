from __future__ import annotations

import pytest
from dynamixel_sdk import Protocol2PacketHandler
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.wire import protocol
from firmware_bridge.wire.protocol import Block, Discarded, PacketParser, Status, StatusParser
from hardware.errors import ConfigError

A01 = "FF FF FD 00 14 11 00 55 00 00 00 FF FF FD FD 00 00 00 00 08 00 00 00 14"
A04_REPLY = "FF FF FD 00 FE 19 00 55 00 14 00 08 00 00 FC F6 00 15 FF FF FF FF AE AC 80 16 FF FF FD 00 1F AA"
A08_ALERT = "FF FF FD 00 14 08 00 55 80 00 08 00 00 FC 7D"
A08_REGISTER_70 = "FF FF FD 00 14 05 00 55 80 24 95 39"
A15_ECHO = "FF FF FD 00 14 07 00 02 84 00 04 00 66 C5"
A15_ANSWER = "FF FF FD 00 14 08 00 55 00 00 08 00 00 FF C1"
A21 = "FF FF FD 00 01 07 00 55 00 06 04 26 65 5D"


def wire(text: str) -> bytes:
    return bytes.fromhex(text)


def answers(data: bytes, *devices: int) -> tuple[list[Status], Discarded]:
    discarded = Discarded()
    return StatusParser(devices, discarded).feed(data), discarded


@pytest.mark.parametrize(
    ("built", "manual"),
    [
        (protocol.ping(1), "FF FF FD 00 01 03 00 01 19 4E"),
        (protocol.ping(), "FF FF FD 00 FE 03 00 01 31 42"),
        (protocol.read(1, 132, 4), "FF FF FD 00 01 07 00 02 84 00 04 00 1D 15"),
        (protocol.write(1, 116, wire("00 02 00 00")), "FF FF FD 00 01 09 00 03 74 00 00 02 00 00 CA 89"),
        (protocol.reboot(1), "FF FF FD 00 01 03 00 08 2F 4E"),
        (protocol.sync_read(132, 4, (1, 2)), "FF FF FD 00 FE 09 00 82 84 00 04 00 01 02 CE FA"),
        (
            protocol.sync_write(116, {1: wire("96 00 00 00"), 2: wire("AA 00 00 00")}),
            "FF FF FD 00 FE 11 00 83 74 00 04 00 01 96 00 00 00 02 AA 00 00 00 82 87",
        ),
        (
            protocol.fast_sync_read(132, 4, (20, 21, 22)),
            "FF FF FD 00 FE 0A 00 8A 84 00 04 00 14 15 16 60 9F",
        ),
        (
            protocol.sync_read(132, 4, (20, 21, 22)),
            "FF FF FD 00 FE 0A 00 82 84 00 04 00 14 15 16 50 1F",
        ),
    ],
)
def test_instructions_are_the_bytes_of_the_manual(built: bytes, manual: str) -> None:
    assert built == wire(manual)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0x00FDFFFF, "FF FF FD 00 01 0A 00 03 74 00 FF FF FD FD 00 21 E7"),
        (-131073, "FF FF FD 00 01 0A 00 03 74 00 FF FF FD FD FF 23 E5"),
    ],
)
def test_a_header_inside_data_is_stuffed_before_length_and_crc(value: int, expected: str) -> None:
    data = value.to_bytes(4, "little", signed=value < 0)
    assert protocol.write(1, 116, data) == wire(expected)


def test_stuffing_is_removed_from_an_answer() -> None:
    found, discarded = answers(wire(A01), 20)
    assert found == [Status(20, 0, wire("00 00 FF FF FD 00 00 00 00 08 00 00"))]
    assert discarded == Discarded()


def test_alert_bit_comes_with_the_data() -> None:
    found, _ = answers(wire(A08_ALERT + A08_REGISTER_70), 20)
    assert found == [Status(20, 0x80, wire("00 08 00 00")), Status(20, 0x80, b"\x24")]


def test_own_echo_is_skipped_and_counted() -> None:
    found, discarded = answers(wire(A15_ECHO + A15_ANSWER), 20)
    assert found == [Status(20, 0, wire("00 08 00 00"))]
    assert discarded == Discarded(echo=1)


def test_ping_answer_holds_model_and_firmware() -> None:
    found, _ = answers(wire(A21), 1)
    assert found == [Status(1, 0, wire("06 04 26"))]


def test_answer_of_a_device_not_asked_is_counted_as_foreign() -> None:
    found, discarded = answers(wire(A15_ANSWER), 21)
    assert found == []
    assert discarded == Discarded(foreign=1)


def test_status_without_an_error_byte_is_no_answer() -> None:
    found, discarded = answers(protocol.packet(20, protocol.Instruction.STATUS), 20)
    assert found == []
    assert discarded == Discarded(foreign=1)


def test_noise_around_an_answer_is_skipped_and_counted() -> None:
    found, discarded = answers(wire("00 FF FF" + A15_ANSWER + "55 AA"), 20)
    assert len(found) == 1
    assert discarded == Discarded(noise=5)


def test_flipped_bit_is_counted_and_the_next_answer_still_read() -> None:
    damaged = bytearray(wire(A15_ANSWER))
    damaged[10] ^= 0x04
    found, discarded = answers(bytes(damaged) + wire(A08_ALERT), 20)
    assert found == [Status(20, 0x80, wire("00 08 00 00"))]
    assert discarded.crc == 1


def test_answer_cut_short_does_not_swallow_the_next_one() -> None:
    found, discarded = answers(wire(A15_ANSWER)[:9] + wire(A08_ALERT), 20)
    assert found == [Status(20, 0x80, wire("00 08 00 00"))]
    assert (discarded.half, discarded.by_id) == (1, {(20, "half"): 1})


def test_absurd_length_does_not_make_the_reader_wait() -> None:
    found, _ = answers(wire("FF FF FD 00 14 FF FF 55") + wire(A15_ANSWER), 20)
    assert len(found) == 1


def test_header_split_between_two_reads_is_found() -> None:
    parser = StatusParser((20,), Discarded())
    assert parser.feed(wire("11 22 FF FF FD")) == []
    assert parser.pending == 3
    assert len(parser.feed(wire(A15_ANSWER)[3:])) == 1
    assert parser.pending == 0


@given(st.binary(max_size=64))
def test_stuffing_leaves_no_header_and_can_be_undone(data: bytes) -> None:
    stuffed = protocol.stuff(data)
    assert protocol.HEADER not in stuffed + b"\x00"
    assert protocol.unstuff(stuffed) == data


pieces = st.lists(st.sampled_from([b"\xff", b"\xff\xff\xfd", b"\xfd", b"\x00", b"\x01"]), max_size=24)


@given(pieces.map(b"".join))
def test_stuffing_can_be_undone_where_headers_abound(data: bytes) -> None:
    assert protocol.unstuff(protocol.stuff(data)) == data


@given(st.binary(min_size=1, max_size=300))
def test_crc_agrees_with_the_vendors_library(data: bytes) -> None:
    assert protocol.crc16(data) == Protocol2PacketHandler().updateCRC(0, data, len(data))


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_crc_can_be_continued(first: bytes, second: bytes) -> None:
    assert protocol.crc16(second, protocol.crc16(first)) == protocol.crc16(first + second)


@given(pieces.map(b"".join), st.integers(0, 252), st.lists(st.integers(1, 9), max_size=30))
def test_any_status_survives_any_cutting_into_reads(data: bytes, device: int, cuts: list[int]) -> None:
    stream = protocol.status(device, 0, data)
    parser = StatusParser((device,), Discarded())
    found: list[Status] = []
    for size in [*cuts, len(stream)]:
        found += parser.feed(stream[:size])
        stream = stream[size:]
    assert found == [Status(device, 0, data)]


hostile = st.lists(
    st.one_of(
        st.binary(max_size=12), st.just(protocol.HEADER), st.just(protocol.HEADER + b"\xfe\x19\x00\x55")
    ),
    max_size=30,
).map(b"".join)


@given(hostile)
def test_hostile_bytes_raise_nothing_and_are_all_accounted_for(data: bytes) -> None:
    discarded = Discarded()
    parser = PacketParser(discarded)
    packets = parser.feed(data)
    assert parser.pending <= protocol.MAX_LENGTH + 7
    assert discarded.noise + parser.pending + 10 * len(packets) <= len(data)
    protocol.parse_fast_sync_read(data, (20, 21, 22), 4, discarded)


def test_hostile_stream_is_checksummed_at_most_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    work = 0
    real = protocol.crc16

    def counting(data: bytes, crc: int = 0) -> int:
        nonlocal work
        work += len(data)
        return real(data, crc)

    monkeypatch.setattr(protocol, "crc16", counting)
    nested = b"".join(protocol.HEADER + b"\x01" + size.to_bytes(2, "little") for size in range(3, 600))
    long = b"".join(protocol.HEADER + b"\x01\x00\x02" + bytes(500) for _ in range(40))
    stream = nested + long
    PacketParser(Discarded()).feed(stream)
    assert 0 < work <= 2 * len(stream)


def test_fast_sync_read_reply_is_read_without_unstuffing() -> None:
    discarded = Discarded()
    blocks = protocol.parse_fast_sync_read(wire(A04_REPLY), (20, 21, 22), 4, discarded)
    assert blocks == {
        20: Block(0, wire("00 08 00 00")),
        21: Block(0, wire("FF FF FF FF")),
        22: Block(0x80, wire("FF FF FD 00")),
    }
    assert discarded == Discarded()


def test_devices_together_write_the_manuals_fast_reply() -> None:
    blocks = {
        20: Block(0, wire("00 08 00 00")),
        21: Block(0, wire("FF FF FF FF")),
        22: Block(0x80, wire("FF FF FD 00")),
    }
    assert protocol.fast_reply(blocks, 3, 4) == wire(A04_REPLY)


def test_fast_reply_is_found_behind_the_own_echo() -> None:
    echo = protocol.fast_sync_read(132, 4, (20, 21, 22))
    assert len(protocol.parse_fast_sync_read(echo + wire(A04_REPLY), (20, 21, 22), 4, Discarded())) == 3


@pytest.mark.parametrize("position", range(8, 32))
def test_one_flipped_byte_costs_one_block_of_a_fast_reply(position: int) -> None:
    reply = bytearray(wire(A04_REPLY))
    reply[position] ^= 0x10
    blocks = protocol.parse_fast_sync_read(reply, (20, 21, 22), 4, Discarded())
    hit, offset = divmod(position - 8, 8)
    lost = {20 + hit}
    if offset >= 6:  # a byte of the CRC, from which the next block's CRC runs on
        lost.add(21 + hit)
    assert {20, 21, 22} - set(blocks) == lost & {20, 21, 22}


def test_fast_reply_cut_short_gives_the_whole_blocks() -> None:
    discarded = Discarded()
    blocks = protocol.parse_fast_sync_read(wire(A04_REPLY)[:-3], (20, 21, 22), 4, discarded)
    assert sorted(blocks) == [20, 21]
    assert (discarded.half, discarded.by_id) == (1, {(22, "half"): 1})


def test_fast_reply_of_other_devices_is_foreign() -> None:
    discarded = Discarded()
    assert protocol.parse_fast_sync_read(wire(A04_REPLY), (10, 11, 12), 4, discarded) == {}
    assert discarded.foreign == 3


def test_fast_reply_of_another_size_is_not_taken() -> None:
    assert protocol.parse_fast_sync_read(wire(A04_REPLY), (20, 21), 4, Discarded()) == {}


@pytest.mark.parametrize("device", [-1, 253, 255])
def test_an_id_that_is_none_is_refused(device: int) -> None:
    with pytest.raises(ConfigError, match=rf"{device} is no Dynamixel id; use 0 to 252"):
        protocol.ping(device)


def test_sync_write_of_unequal_data_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"one length for at least one id, not \[1, 2\]"):
        protocol.sync_write(116, {20: b"\0", 21: b"\0\0"})


def test_packet_longer_than_a_reader_accepts_is_refused() -> None:
    with pytest.raises(ConfigError, match="split it below 1022"):
        protocol.write(20, 0, bytes(1100))
