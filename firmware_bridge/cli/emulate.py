"""`duck emulate`: a duck's bus to try things on, without a duck and without physics."""

from __future__ import annotations

import argparse
import time

from firmware_bridge.emulator import EmulatedDuck
from firmware_bridge.signals import StopSignals

POLL_S = 0.1
"""Time between two looks for a signal [s]."""


def emulate_command(options: argparse.Namespace) -> int:
    """Emulate a duck whose servos go where they are told, until a signal comes; return the exit code."""
    with StopSignals() as signals, EmulatedDuck() as duck:
        print(f"{duck.port}", flush=True)
        print("The duck answers on this port until Ctrl-C. Drive it with `duck run --port PORT`.", flush=True)
        while signals.received is None:
            time.sleep(POLL_S)
    return 0
