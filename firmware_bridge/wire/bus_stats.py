"""What went wrong on the bus, counted by kind, and by the id of the device it happened to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields


@dataclass
class Discarded:
    """What a reader threw away instead of taking it for data.

    Attributes:
        crc: packets or blocks whose CRC does not fit.
        half: packets or blocks that were cut short.
        short: whole answers with another number of data bytes than asked for.
        late: whole answers to an earlier question.
        foreign: whole packets of a device that was not asked.
        echo: instruction packets, heard back on a half-duplex line.
        noise: bytes that belong to no packet.
        by_id: the same by id and kind; the id is the one the packet bore, or the one whose turn it was.
    """

    crc: int = 0
    half: int = 0
    short: int = 0
    late: int = 0
    foreign: int = 0
    echo: int = 0
    noise: int = 0
    by_id: Counter[tuple[int, str]] = field(default_factory=Counter, compare=False, repr=False)

    def count(self, kind: str, device: int | None = None, amount: int = 1) -> None:
        """Add to the count of one of the kinds, and to that of a device."""
        setattr(self, kind, getattr(self, kind) + amount)
        if device is not None:
            self.by_id[device, kind] += amount

    def totals(self) -> dict[str, int]:
        """Return the count of each kind that is not zero."""
        counts = {row.name: getattr(self, row.name) for row in fields(self) if row.name != "by_id"}
        return {kind: count for kind, count in counts.items() if count}

    def of(self, device: int) -> dict[str, int]:
        """Return what was counted for one device, by kind."""
        return {kind: count for (found, kind), count in self.by_id.items() if found == device}


@dataclass
class BusStats(Discarded):
    """Counts since a bus was made.

    Attributes:
        refused: answers that say the device did not do what it was asked.
        timeout: tries that one or more devices did not answer, or not with a good packet.
        retry: questions asked a second time.
    """

    refused: int = 0
    timeout: int = 0
    retry: int = 0

    def count_try(self, kind: str, devices: Iterable[int]) -> None:
        """Add one to a kind's count, and one to that of each device it happened to."""
        self.count(kind)
        self.by_id.update((device, kind) for device in devices)
