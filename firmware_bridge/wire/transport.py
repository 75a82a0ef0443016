"""One question at a time on the bus: how long its answers may take, and which of them may be believed.

Answers bear no number, so a late one looks like a new one. Three rules keep late ones from being taken for
data. Devices answer in the order asked, so what breaks the order is late. After a sync read that was not
answered in full, the order is turned by one for those that follow. And after a question to one device that
was not answered, the next two such questions wait for a late answer before they are asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from time import monotonic
from typing import NamedTuple

from firmware_bridge.wire import protocol
from firmware_bridge.wire.bus_stats import BusStats
from firmware_bridge.wire.port import BITS_PER_BYTE, Port
from firmware_bridge.wire.protocol import Block, Status

HOST_MARGIN_S = 0.005
"""Time an answer inside a tick may come later than its bytes need on the wire [s].

Covers two 1 ms USB frames and a late wake-up of this process or of an emulator behind a pseudo-terminal. A
read of the whole duck that fails and its retry then still end inside one control period of 20 ms.
"""
ACK_MARGIN_S = 0.020
"""The same outside of ticks [s], where patience costs nothing."""
LATENCY_S = 0.001
"""Time beyond that on the wire without which a question with a deadline is not asked [s]: one USB frame."""

_WARY = 2
"""Questions to one device before which a late answer is waited for, after one that was not answered."""
_ANY = range(protocol.MAX_ID + 1)


class Question(NamedTuple):
    """A sync read as it goes out.

    Attributes:
        fast: whether the devices share one reply.
        address: first byte.
        length: data bytes of each device.
        devices: ids, in the order in which they answer.
        packet: its bytes.
        size: bytes of all answers together.
    """

    fast: bool
    address: int
    length: int
    devices: tuple[int, ...]
    packet: bytes
    size: int


@lru_cache(maxsize=256)
def question(fast: bool, address: int, length: int, devices: tuple[int, ...]) -> Question:
    """Return the sync read, fast or plain, of `length` bytes from `address` of some devices."""
    if fast:
        packet = protocol.fast_sync_read(address, length, devices)
        size = protocol.FAST_OVERHEAD + len(devices) * (length + protocol.FAST_BLOCK_OVERHEAD)
    else:
        packet = protocol.sync_read(address, length, devices)
        size = len(devices) * (length + protocol.STATUS_OVERHEAD)
    return Question(fast, address, length, devices, packet, size)


class Transport:
    """Questions and answers on one wire.

    Args:
        port: the wire.
        baud: its speed [1/s].
        return_delay: time each device waits before it answers [s].

    Attributes:
        stats: what went wrong so far.
    """

    def __init__(self, port: Port, baud: int, return_delay: float) -> None:
        self.stats = BusStats()
        self._port = port
        self._byte_time = BITS_PER_BYTE / baud
        self._return_delay = return_delay
        self._turn = 0
        self._wary = 0

    def reply_time(self, sent: int, received: int, answers: int) -> float:
        """Return the least time [s] for `sent` bytes out and `received` bytes back from `answers` devices."""
        return (sent + received) * self._byte_time + answers * self._return_delay

    def time_of(self, asked: Question) -> float:
        """Return the least time that a question and its answers take [s]."""
        return self.reply_time(len(asked.packet), asked.size, len(asked.devices))

    def has_room(self, asked: Question, deadline: float | None) -> bool:
        """Return whether a question's answers can be there by a deadline [s], if there is one."""
        return deadline is None or monotonic() + self.time_of(asked) + LATENCY_S <= deadline

    def turned(self, devices: Sequence[int]) -> tuple[int, ...]:
        """Return ids in the order in which to ask them now."""
        first = self._turn % len(devices)
        return (*devices[first:], *devices[:first])

    def send(self, packet: bytes) -> None:
        """Send an instruction that nobody answers.

        Raises:
            BusError: the port is gone, or takes no bytes.
        """
        self._port.write(packet)

    def ask(self, asked: Question, deadline: float | None) -> dict[int, Block]:
        """Put a sync read on the wire once.

        Args:
            asked: the question.
            deadline: monotonic time after which nothing is waited for [s]; None outside of ticks.

        Returns:
            The good answers by id, in the order asked.

        Raises:
            BusError: the port is gone, or takes no bytes.
        """
        margin = ACK_MARGIN_S if deadline is None else HOST_MARGIN_S
        until = self._put(asked.packet, self.time_of(asked) + margin)
        until = until if deadline is None else min(until, deadline)
        if asked.fast:
            blocks = self._hear_together(asked, until)
        else:
            answers = self._hear_each(asked.length, asked.devices, until)
            blocks = {device: Block(answer.error, answer.data) for device, answer in answers.items()}
            self._turn += len(answers) < len(asked.devices)
        for device in [device for device, block in blocks.items() if refusal(block.error)]:
            del blocks[device]
            self.stats.count("refused", device)
        return blocks

    def ask_one(self, packet: bytes, device: int, length: int) -> Status | None:
        """Send an instruction to one device, outside of ticks.

        Args:
            packet: the instruction.
            device: id.
            length: data bytes of its answer.

        Returns:
            The answer, which may be a refusal; None when no good one came.
        """
        size = length + protocol.STATUS_OVERHEAD
        self._await_late(size)
        until = self._put(packet, self.reply_time(len(packet), size, 1) + ACK_MARGIN_S)
        answer = self._hear_each(length, (device,), until).get(device)
        self._wary = self._wary if answer else _WARY
        return answer

    def ask_rivals(self, packet: bytes, device: int, length: int) -> list[Status]:
        """Send an instruction to one id, and listen on after the first answer.

        Args:
            packet: the instruction.
            device: id.
            length: data bytes of an answer.

        Returns:
            Every whole answer: two when two devices have this id and do not talk at the same time.
        """
        size = length + protocol.STATUS_OVERHEAD
        until = self._put(packet, self.reply_time(len(packet), size, 1) + ACK_MARGIN_S)
        data = self._port.read(size, until)
        if data:
            data += self._port.read(len(packet) + 2 * size, monotonic() + HOST_MARGIN_S)
        parser = protocol.StatusParser((device,), self.stats)
        answers = parser.feed(data)
        parser.end()
        return answers

    def ask_all(self, packet: bytes, window: float) -> list[Status]:
        """Send an instruction that any device may answer, and listen for a time [s].

        Returns:
            Every whole answer, also of an id that gave one before.
        """
        until = self._put(packet, self.reply_time(len(packet), 0, 0) + window)
        parser = protocol.StatusParser(range(protocol.MAX_ID + 1), self.stats)
        answers: list[Status] = []
        over = False
        while not over:
            data = self._port.read(protocol.STATUS_OVERHEAD, until)
            answers += parser.feed(data)
            over = not data or monotonic() >= until
        parser.end()
        return answers

    def _put(self, packet: bytes, wait: float) -> float:
        """Send an instruction and return the time when `wait` [s] is over."""
        stale = self._port.flush_input()
        if stale:
            protocol.count_strays(stale, _ANY, self.stats)
        self._port.write(packet)
        return monotonic() + wait

    def _await_late(self, size: int) -> None:
        """Give the answer of `size` bytes that an earlier question may still have time to come."""
        if not self._wary:
            return
        self._wary -= 1
        data = self._port.read(size, monotonic() + ACK_MARGIN_S)
        if data:
            self._wary = 0
            protocol.count_strays(data, _ANY, self.stats)

    def _hear_together(self, asked: Question, until: float) -> dict[int, Block]:
        """Receive the devices' common reply, until it is whole or its time is over."""
        buffer = bytearray()
        end, over = asked.size, False
        while len(buffer) < end and not over:
            data = self._port.read(end - len(buffer), until)
            buffer += data
            end = protocol.fast_reply_start(buffer, asked.devices, asked.length) + asked.size
            over = not data or monotonic() >= until
        self._turn += len(buffer) < end
        return protocol.parse_fast_sync_read(buffer, asked.devices, asked.length, self.stats)

    def _hear_each(self, length: int, devices: Sequence[int], until: float) -> dict[int, Status]:
        """Gather the answer of each device, until all are there or their time is over."""
        size = length + protocol.STATUS_OVERHEAD
        parser = protocol.StatusParser(devices, self.stats)
        answers: dict[int, Status] = {}
        over = False
        while len(answers) < len(devices) and not over:
            wanted = size * (len(devices) - len(answers)) - parser.pending
            data = self._port.read(max(1, wanted), until)
            for answer in parser.feed(data):
                if len(answer.data) == length or refusal(answer.error):
                    self._drop_late(answers, devices, answer.id)
                    answers[answer.id] = answer
                else:
                    self.stats.count("short", answer.id)
            over = not data or monotonic() >= until
        parser.end()
        return answers

    def _drop_late(self, answers: dict[int, Status], devices: Sequence[int], newest: int) -> None:
        """Drop the answers that came before the newest but are due with it or after it."""
        due = devices.index(newest)
        for device in [device for device in answers if devices.index(device) >= due]:
            del answers[device]
            self.stats.count("late", device)


def refusal(error: int) -> int:
    """Return the error code in an error byte, 0 for none; the alert bit is none."""
    return error & ~protocol.ALERT_BIT
