"""Bytes against the vendor: every example of the protocol's manual, and the library `dynamixel-sdk`.

The library does not stuff what it sends, so it judges our packets as a receiver, and as a sender only where
no header occurs in them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import dynamixel_sdk as sdk
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from firmware_bridge.wire import protocol
from firmware_bridge.wire.protocol import Block, Discarded, Packet, PacketParser, Status, StatusParser

FAST_SYNC_REPLY = (
    "FF FF FD 00 FE 19 00 55 00 03 A6 00 00 00 84 08 00 07 1F 08 00 00 16 CA 00 04 FF 03 00 00 D1 9E"
)
FAST_SYNC_REPLY_JA40 = "FF FF FD 00 FE 11 00 55 00 01 D0 07 00 00 0C 83 00 02 09 00 00 00 11 40"


def wire(text: str) -> bytes:
    return bytes.fromhex(text)


# --- the manual's examples that `test_protocol` does not hold ---------------------------------------------


@pytest.mark.parametrize(
    ("built", "manual"),
    [
        (
            protocol.packet(1, 0x04, wire("68 00 C8 00 00 00")),
            "09 00 04 68 00 C8 00 00 00 AE 8E",
        ),  # reg write
        (protocol.packet(1, 0x05), "03 00 05 02 CE"),  # action
        (protocol.packet(1, 0x06, b"\x01"), "04 00 06 01 A1 E6"),  # factory reset
        (protocol.packet(1, 0x10, wire("01 44 58 4C 22")), "08 00 10 01 44 58 4C 22 B1 DC"),  # clear
        (protocol.status(1), "04 00 55 00 A1 0C"),
        (protocol.status(1, 0, wire("A6 00 00 00")), "08 00 55 00 A6 00 00 00 8C C0"),
        (protocol.status(1, 0, wire("77 00")), "06 00 55 00 77 00 C3 69"),
        (protocol.status(1, 0, wire("06 04 26")), "07 00 55 00 06 04 26 65 5D"),
    ],
)
def test_packets_of_device_1_are_the_bytes_of_the_manual(built: bytes, manual: str) -> None:
    whole = wire("FF FF FD 00 01" + manual)
    assert built == whole
    assert PacketParser(Discarded()).feed(whole) == [Packet(1, whole[7], whole[8:-2])]


@pytest.mark.parametrize(
    ("built", "manual"),
    [
        (protocol.fast_sync_read(132, 4, (3, 7, 4)), "FE 0A 00 8A 84 00 04 00 03 07 04 20 F2"),
        (protocol.fast_sync_read(580, 4, (1, 2)), "FE 09 00 8A 44 02 04 00 01 02 72 F2"),
        (
            protocol.packet(0xFE, 0x92, wire("01 90 00 02 00 02 92 00 01 00")),  # bulk read
            "FE 0D 00 92 01 90 00 02 00 02 92 00 01 00 1A 05",
        ),
        (
            protocol.packet(0xFE, 0x93, wire("01 20 00 02 00 A0 00 02 1F 00 01 00 50")),  # bulk write
            "FE 10 00 93 01 20 00 02 00 A0 00 02 1F 00 01 00 50 B7 68",
        ),
        (protocol.status(2, 0, wire("06 04 26")), "02 07 00 55 00 06 04 26 6F 6D"),
        (protocol.status(2, 0, wire("1F 08 00 00")), "02 08 00 55 00 1F 08 00 00 BA BE"),
        (protocol.status(2, 0, b"\x24"), "02 05 00 55 00 24 8B A9"),
    ],
)
def test_packets_of_and_to_others_are_the_bytes_of_the_manual(built: bytes, manual: str) -> None:
    assert built == wire("FF FF FD 00" + manual)


def test_fast_sync_reads_crcs_run_on_through_the_blocks_as_in_the_manual() -> None:
    three = {3: wire("A6 00 00 00"), 7: wire("1F 08 00 00"), 4: wire("FF 03 00 00")}
    two = {1: wire("D0 07 00 00"), 2: wire("09 00 00 00")}
    for data, manual in ((three, FAST_SYNC_REPLY), (two, FAST_SYNC_REPLY_JA40)):
        blocks = {device: Block(0, counts) for device, counts in data.items()}
        assert protocol.fast_reply(blocks, len(data), 4) == wire(manual)
        assert protocol.parse_fast_sync_read(wire(manual), list(data), 4, Discarded()) == blocks


# --- the vendor's library, on a port without a wire -------------------------------------------------------


class Loop:
    """A port that keeps what the library sends, and gives it what was put in."""

    def __init__(self, incoming: bytes = b"") -> None:
        self.is_using = False
        self.sent = b""
        self.incoming = incoming

    def clearPort(self) -> None:
        pass

    def writePort(self, packet: Sequence[int]) -> int:
        self.sent = bytes(packet)
        return len(packet)

    def readPort(self, length: int) -> list[int]:
        taken, self.incoming = self.incoming[:length], self.incoming[length:]
        return list(taken)

    def setPacketTimeout(self, length: int) -> None:
        pass

    def isPacketTimeout(self) -> bool:
        return not self.incoming


HANDLER = sdk.PacketHandler(2.0)
data_bytes = st.binary(min_size=1, max_size=40)
header_rich = st.lists(
    st.sampled_from([b"\xff", b"\xff\xff\xfd", b"\xfd", b"\x00", b"\x01", b"\xff\xff\xfd\x00"]), max_size=12
).map(b"".join)


@given(st.integers(0, 252), st.sampled_from([0, 0x80, 4]), st.one_of(data_bytes, header_rich))
def test_vendors_library_reads_any_status_that_our_devices_send(device: int, error: int, data: bytes) -> None:
    # Once it has taken a stuffed byte out, the library compares with bytes that it has moved already, and
    # takes the FD of a later FF FD FD for another one.
    assume(not re.search(rb"\xff\xff\xfd.*\xff\xfd\xfd", data, re.DOTALL))
    packet, result = HANDLER.rxPacket(Loop(protocol.status(device, error, data)), False)
    assert result == sdk.COMM_SUCCESS
    assert bytes(packet[4:5]) == bytes([device])
    assert bytes(packet[8 : 9 + len(data)]) == bytes([error]) + data


@given(
    st.dictionaries(st.integers(0, 252), st.binary(min_size=4, max_size=4), min_size=1, max_size=16),
)
def test_vendors_library_reads_any_fast_reply_that_our_devices_send(data: dict[int, bytes]) -> None:
    reply = protocol.fast_reply({i: Block(0, value) for i, value in data.items()}, len(data), 4)
    group = sdk.GroupSyncRead(Loop(reply), HANDLER, 132, 4)
    for device in data:
        group.addParam(device)
    assert group.fastSyncReadRxPacket() == sdk.COMM_SUCCESS
    assert {device: bytes(group.data_dict[device]) for device in data} == data


def sent_by_vendor(instruct: str, *arguments: object) -> bytes:
    port = Loop()
    getattr(HANDLER, instruct)(port, *arguments)
    return port.sent


@given(
    st.integers(0, 252),
    st.integers(0, 65_535),
    st.binary(min_size=1, max_size=20).filter(lambda data: b"\xff\xff" not in data),
)
def test_vendors_library_sends_the_bytes_that_we_send(device: int, address: int, data: bytes) -> None:
    assume(address & 0xFF00 != 0xFF00 and address & 0xFF != 0xFF)  # no header can form
    ids = list(dict.fromkeys(data))
    assert sent_by_vendor("readTx", device, address, len(data)) == protocol.read(device, address, len(data))
    assert sent_by_vendor("writeTxOnly", device, address, len(data), data) == protocol.write(
        device, address, data
    )
    for fast, ours in ((False, protocol.sync_read), (True, protocol.fast_sync_read)):
        theirs = sent_by_vendor("syncReadTx", address, 4, ids, len(ids), fast)
        assert theirs == ours(address, 4, ids)
    rows = bytes([device]) + data
    assert sent_by_vendor("syncWriteTxOnly", address, len(data), rows, len(rows)) == protocol.sync_write(
        address, {device: data}
    )
    assert sent_by_vendor("reboot", device) == protocol.reboot(device)
    assert sent_by_vendor("ping", device) == protocol.ping(device)


@given(st.integers(0, 252), st.binary(max_size=40))
def test_our_reader_takes_what_the_vendors_crc_confirms_and_nothing_else(device: int, body: bytes) -> None:
    """Frames are put together by hand, with the vendor's CRC once and with one that differs from it once."""
    assume(b"\xff\xff\xfd" not in body)
    head = (
        bytes((0xFF, 0xFF, 0xFD, 0x00, device)) + (len(body) + 4).to_bytes(2, "little") + b"\x55\x00" + body
    )
    check = HANDLER.updateCRC(0, head, len(head))
    assert StatusParser((device,), Discarded()).feed(head + check.to_bytes(2, "little")) == [
        Status(device, 0, body)
    ]
    assert StatusParser((device,), Discarded()).feed(head + (check ^ 1).to_bytes(2, "little")) == []
