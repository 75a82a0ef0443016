"""`duck plot`: pictures of a recording."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from firmware_bridge.cli.parsing import Commands, add_command, number_from_zero
from firmware_bridge.cli.targets import check_target, writing


def add(commands: Commands) -> None:
    """Add the command."""
    text = "draw a recording: joints, timing, IMU, command and power, over the mode"
    parser = add_command(commands, "plot", plot_command, text)
    parser.add_argument("log", type=Path, metavar="LOG", help="a recording, finished or cut short")
    text = "page (.html) or picture (.png, .svg); without it LOG.html"
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help=text)
    text = "only this stretch after the first tick"
    parser.add_argument("--between", nargs=2, type=number_from_zero, metavar="S", help=text)


def plot_command(options: argparse.Namespace) -> int:
    """Draw a recording and return the exit code.

    Raises:
        DuckError: it cannot be read, a package is not installed, or the picture cannot be written there.
    """
    from firmware_bridge.cli.recording import refuse_recording
    from firmware_bridge.recording.convert import refuse_source
    from firmware_bridge.recording.log import read_log
    from firmware_bridge.recording.panels import between
    from firmware_bridge.recording.plot import check_ending, plot

    if options.output:
        check_ending(options.output)
        check_target(options.output)
    log = read_log(options.log)
    target = options.output or options.log.with_suffix(".html")
    refuse_source(target, options.log)
    refuse_recording(target)
    if log.problem:
        print(f"duck: {options.log}: {log.problem}", file=sys.stderr)
    if options.between:
        log = between(log, *options.between)
    with writing(target):
        plot(log, options.log.name, target)
    print(f"{target}: {log.ticks} ticks")
    return 0
