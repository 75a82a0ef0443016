"""`microduck virtual-duck`."""

from __future__ import annotations

from pathlib import Path

from firmware_bridge.cli.recording import refuse_recording
from microduck.cli.console import asked_to_stop, tell


def virtual_duck(
    view: bool = False,
    seconds: float | None = None,
    report: Path | None = None,
    video: Path | None = None,
    link: Path | None = None,
    twin: Path | None = None,
) -> None:
    """Be a duck on a serial port: real servo bytes, simulated body. Drive it with `duck run --port PORT`.

    Args:
        view: show the duck in a window.
        seconds: time until it ends; Ctrl-C ends it otherwise [s].
        report: JSON file of its runs: falls, path, speed, heading drift.
        video: mp4 file of its last run, written at the end.
        link: path that points to the port while the duck is there.
        twin: TOML file that says which duck to be, such as `microduck twin` writes; else the nominal one.
    """
    from microduck.randomization import load_twin
    from microduck.virtual_duck import VirtualDuckOptions, run_virtual_duck

    for path in filter(None, (report, video)):
        refuse_recording(path)
    options = VirtualDuckOptions(view, seconds, report, video, link, load_twin(twin) if twin else None)
    with asked_to_stop() as stopped:  # the report and the film are still written
        run_virtual_duck(options, tell, stopped)
