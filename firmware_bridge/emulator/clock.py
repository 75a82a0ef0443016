"""How long a bus was busy, worked out from the bytes it carried. No time is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from firmware_bridge.wire.port import BITS_PER_BYTE


@dataclass(frozen=True)
class Traffic:
    """What a bus carried.

    Attributes:
        packets: instructions sent by the host.
        bytes_out: bytes of them.
        bytes_back: bytes of the answers, as they were on the wire.
        busy_s: time the wire was busy: 10 bits a byte, and the delay before each answer [s].
    """

    packets: int = 0
    bytes_out: int = 0
    bytes_back: int = 0
    busy_s: float = 0.0

    @classmethod
    def exchange(cls, bytes_out: int, bytes_back: int, delay_s: float, baud: int) -> Traffic:
        """Return the cost of one instruction and its answers.

        Args:
            bytes_out: bytes of the instruction.
            bytes_back: bytes of all its answers.
            delay_s: time the devices waited before they answered, together [s].
            baud: speed of the wire [1/s].
        """
        busy_s = (bytes_out + bytes_back) * BITS_PER_BYTE / baud + delay_s
        return cls(1, bytes_out, bytes_back, busy_s)

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.packets + other.packets,
            self.bytes_out + other.bytes_out,
            self.bytes_back + other.bytes_back,
            self.busy_s + other.busy_s,
        )

    def __sub__(self, other: Traffic) -> Traffic:
        return self + Traffic(-other.packets, -other.bytes_out, -other.bytes_back, -other.busy_s)


_NONE = Traffic()


@dataclass(frozen=True)
class WireClock:
    """Everything a bus carried until now; it never changes, so two of them tell what lay between.

    Attributes:
        kinds: what each kind of instruction cost, with its answers, by instruction byte.
    """

    kinds: Mapping[int, Traffic] = field(default_factory=lambda: MappingProxyType({}))

    def plus(self, instruction: int, traffic: Traffic) -> WireClock:
        """Return the clock after one more exchange."""
        return WireClock({**self.kinds, instruction: self.of(instruction) + traffic})

    def since(self, earlier: WireClock) -> WireClock:
        """Return what the bus carried after `earlier`, a clock of the same bus."""
        grown = {kind: traffic - earlier.of(kind) for kind, traffic in self.kinds.items()}
        return WireClock({kind: traffic for kind, traffic in grown.items() if traffic.packets})

    def of(self, instruction: int) -> Traffic:
        """Return what one kind of instruction cost; all zero when there was none."""
        return self.kinds.get(instruction, _NONE)

    @property
    def total(self) -> Traffic:
        """What all kinds cost together."""
        return sum(self.kinds.values(), _NONE)

    @property
    def busy_s(self) -> float:
        """Time the wire was busy [s]."""
        return self.total.busy_s
