"""The latency timer of USB serial adapters, as the Linux kernel shows it.

An adapter hands received bytes over when it has a full USB packet, or when this timer has run out. Ours are
always the last bytes of an answer, so the timer is a part of every read: with the usual 16 ms no more than 62
of them fit in a second.
"""

from __future__ import annotations

import os
from pathlib import Path

from firmware_bridge.doctor.description import LATENCY_TIMER_S
from firmware_bridge.doctor.facts import LatencyTimer
from hardware.errors import PortError

TERMINALS = Path("/sys/class/tty")
"""Where the kernel lists its terminals."""
_MOST_BYTES = 16


def read_latency_timer(port: str, terminals: Path = TERMINALS) -> LatencyTimer | None:
    """Return the timer of the adapter behind a port; None for a port that has none.

    Read it while the port is open: the low-latency mode that the runtime asks for holds only then.

    Args:
        port: device path, or a link to it.
        terminals: the kernel's list of terminals.

    Raises:
        PortError: the timer is there and cannot be read.
    """
    path = terminals / Path(os.path.realpath(port)).name / "device" / "latency_timer"
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PortError(f"cannot read {path}: {error.strerror}; run this as root") from error
    digits = text.strip()
    return LatencyTimer(path, int(digits) * 1e-3 if digits.isdigit() else None)


def set_latency_timer(path: Path) -> None:
    """Set a timer to 1 ms, until the adapter is unplugged.

    Raises:
        PortError: the kernel does not let this user; the message holds the command that does it.
    """
    milliseconds = round(LATENCY_TIMER_S * 1e3)
    try:
        path.write_text(f"{milliseconds}\n", encoding="ascii")
    except OSError as error:
        raise PortError(
            f"cannot set {path}: {error.strerror}; run `echo {milliseconds} | sudo tee {path}`"
        ) from error
