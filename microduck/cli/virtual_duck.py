"""`microduck virtual-duck`."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from microduck.cli.console import console


def virtual_duck(
    view: bool = False,
    seconds: float | None = None,
    report: Path | None = None,
    video: Path | None = None,
    link: Path | None = None,
) -> None:
    """Be a duck on a serial port: real servo bytes, simulated body. Drive it with `duck run --port PORT`.

    Args:
        view: show the duck in a window.
        seconds: time until it ends; Ctrl-C ends it otherwise [s].
        report: JSON file of its runs: falls, path, speed, heading drift.
        video: mp4 file of its last run, written at the end.
        link: path that points to the port while the duck is there.
    """
    from microduck.virtual_duck import VirtualDuckOptions, run_virtual_duck

    stop = threading.Event()
    # Both ends are asked for: the report and the film are still written.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    run_virtual_duck(VirtualDuckOptions(view, seconds, report, video, link), console.print, stop)
