"""`duck doctor`: what is wrong with the bus, what it costs, and the way to put it right."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from firmware_bridge.cli.asking import agreed
from firmware_bridge.cli.parsing import Commands, add_command
from firmware_bridge.cli.robot import add_robot, port_of, settings_of
from hardware.errors import PortError

if TYPE_CHECKING:
    from firmware_bridge.config import Config
    from firmware_bridge.doctor.report import Report

_EPILOG = """exit codes:
  0  all is well
  1  something deviates; the table says how it is put right
  2  the duck cannot run, or the command line is not valid
"""
_QUESTION = "Write these? All servos go limp first, so hold the duck or lay it down."


def add(commands: Commands) -> None:
    """Add the command."""
    text = "compare servos, IMU board and serial port with what a duck needs"
    parser = add_command(commands, "doctor", doctor_command, text)
    parser.epilog = _EPILOG
    add_robot(parser)
    parser.add_argument(
        "--fix", action="store_true", help="put right what can be written, after asking;\nonly what differs"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before writing")
    parser.add_argument("--json", action="store_true", help="print the report as JSON in place of tables")


def doctor_command(options: argparse.Namespace) -> int:
    """Examine a duck, fix it if asked to, and return the exit code.

    Raises:
        ConfigError: the file of settings is not valid.
    """
    from firmware_bridge.cli.doctor_tables import report_text
    from firmware_bridge.doctor.findings import exit_code
    from firmware_bridge.doctor.report import Report, examine, port_trouble

    config = settings_of(options)
    try:
        report = examine(port_of(options, config), config)
        if not options.json:
            print(report_text(report))
        if options.fix and report.fixes:
            report = _fix(report, config, options)
    except PortError as error:
        port = options.port or config.bus.port
        report = Report(port, None, (port_trouble(port, error),))
        if not options.json:
            print(report_text(report))
    if options.json:
        print(json.dumps(report.as_json(), indent=2))
    return exit_code(report.findings)


def _fix(report: Report, config: Config, options: argparse.Namespace) -> Report:
    """Ask, write, and return what a second examination finds; the first one when the answer is no."""
    from firmware_bridge.cli.doctor_tables import report_text
    from firmware_bridge.doctor import fixer
    from firmware_bridge.doctor.report import examine
    from firmware_bridge.doctor.survey import bus_on

    steps = "\n".join(f"  {fixer.describe(fix)}" for fix in report.fixes)
    if not agreed(f"\n{steps}\n{_QUESTION}", options.yes):
        return report
    outcomes = fixer.apply(report.fixes, bus_on(report.port), config.bus.baud)
    after = replace(examine(report.port, config), outcomes=tuple(outcomes))
    if not options.json:
        print("", *(outcome.text for outcome in outcomes), "", report_text(after), sep="\n")
    return after
