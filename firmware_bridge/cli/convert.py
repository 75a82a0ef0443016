"""`duck convert`: a recording in the formats of other tools."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from firmware_bridge.cli.parsing import Commands, add_command
from firmware_bridge.cli.targets import check_target, writing


def add(commands: Commands) -> None:
    """Add the command."""
    text = "write a recording in the format of another tool"
    parser = add_command(commands, "convert", convert_command, text)
    parser.add_argument("log", type=Path, metavar="LOG", help="a recording, finished or cut short")
    text = (
        "file whose ending tells the format: .csv, .parquet, .mcap (Foxglove), .rrd (Rerun);\n"
        ".tdz finishes a recording that was cut short"
    )
    parser.add_argument("output", type=Path, metavar="OUT", help=text)


def convert_command(options: argparse.Namespace) -> int:
    """Convert a recording and return the exit code.

    Raises:
        DuckError: it cannot be read, a package is not installed, or the file cannot be written there.
    """
    from firmware_bridge.cli.recording import ENDING, refuse_recording
    from firmware_bridge.recording.convert import convert

    check_target(options.output)
    if options.output.suffix != ENDING:
        refuse_recording(options.output)
    with writing(options.output):
        log = convert(options.log, options.output)
    if log.problem:
        print(f"duck: {options.log}: {log.problem}", file=sys.stderr)
    print(f"{options.output}: {log.ticks} ticks")
    return 0
