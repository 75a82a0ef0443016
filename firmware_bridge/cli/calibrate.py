"""`duck calibrate`: its options; `calibration` carries it out, and is imported only then."""

from __future__ import annotations

import argparse
from pathlib import Path

from firmware_bridge.cli.parsing import Commands, add_command
from firmware_bridge.cli.robot import add_robot

_EPILOG = """One joint at a time can be held by its servo, slowly and weakly; all others stay limp.
Keys come from this terminal, also over ssh, or from a pipe.

exit codes:
  0        the file is written; with --check: the calibration fits
  1        ended by you, or an error; the old file is as it was; with --check: it does not fit
  2        the command line is not valid
  128 + N  stopped by signal N, for example 130 by Ctrl-C; the old file is as it was
"""


def add(commands: Commands) -> None:
    """Add the command."""
    text = "measure joint zeros, the IMU's mounting and the gyroscope's bias, step by step"
    parser = add_command(commands, "calibrate", calibrate_command, text)
    parser.epilog = _EPILOG
    add_robot(parser)
    parser.add_argument(
        "--joints", nargs="*", metavar="NAME", help="only joint zeros, of these joints or of all"
    )
    parser.add_argument("--imu", action="store_true", help="only the IMU's mounting and the gyroscope's bias")
    parser.add_argument(
        "--check", action="store_true", help="measure nothing anew; show what the calibrated duck says"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on where an earlier run ended, with what was kept in it"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write; without it the calibration file of the settings, or\n"
        "calibration.toml beside them",
    )


def calibrate_command(options: argparse.Namespace) -> int:
    """Calibrate a duck and return the exit code.

    Raises:
        DuckError: a file, the port or the duck is not in order, or the bus was lost; the old file is as it
            was.
    """
    if options.check and (options.imu or options.joints is not None or options.output or options.resume):
        options.refuse("--check measures nothing anew; leave --joints, --imu, --output and --resume out")
    from firmware_bridge.drive.signals import StopSignals

    with StopSignals() as signals:  # from here on, for what is imported next takes its time
        from firmware_bridge.cli.calibration import calibrate

        return calibrate(options, signals)
