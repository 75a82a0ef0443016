"""`duck setup`: makes new servos part of a duck."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from firmware_bridge.cli.asking import agreed, ask
from firmware_bridge.cli.parsing import Commands, add_command
from firmware_bridge.cli.robot import add_robot, port_of, settings_of

if TYPE_CHECKING:
    from firmware_bridge.config import Config
    from firmware_bridge.doctor.facts import ServoFacts

_EPILOG = """A new servo answers as id 1 at 57,600 baud. It is adopted when exactly one of the
duck's fifteen servos is missing; where more are, --joint says which one it is.

exit codes:
  0  nothing is missing any more
  1  something is; the message says what
  2  the command line is not valid
"""


def add(commands: Commands) -> None:
    """Add the command."""
    text = "give a new servo the id, the speed and the settings of the one it replaces"
    parser = add_command(commands, "setup", setup_command, text)
    parser.epilog = _EPILOG
    add_robot(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--joint", metavar="NAME", help="joint of the new servo, or `mouth`")
    which.add_argument("--all", action="store_true", help="set up a whole new set, servo by servo")
    parser.add_argument("--yes", action="store_true", help="do not ask before writing")


def setup_command(options: argparse.Namespace) -> int:
    """Adopt one new servo, or all of a set, and return the exit code.

    Raises:
        BusError: no port, no new servo, more than one, or one that fails.
        ConfigError: the file of settings is not valid.
    """
    config = settings_of(options)
    port = port_of(options, config)
    return _adopt_all(port, config) if options.all else _adopt_one(port, config, options)


def _adopt_one(port: str, config: Config, options: argparse.Namespace) -> int:
    from firmware_bridge.doctor.adoption import adopt, find_vacancy
    from firmware_bridge.doctor.survey import bus_on
    from firmware_bridge.robot.devices import name_of

    open_at, baud = bus_on(port), config.bus.baud
    found = find_vacancy(open_at, options.joint, baud)
    if found is None:
        print("All fifteen servos answer; there is nothing to adopt.")
        return 0
    place, newcomer = found
    question = f"Make the servo with id {newcomer.id} at {newcomer.baud} baud the {name_of(place)}?"
    if not agreed(question, options.yes):
        return 1
    _tell(adopt(open_at, newcomer, place, baud), config)
    return 0


def _adopt_all(port: str, config: Config) -> int:
    from firmware_bridge.doctor.adoption import adopt_all
    from firmware_bridge.doctor.survey import bus_on
    from firmware_bridge.robot.devices import name_of
    from hardware.joints import MOUTH_ID

    left = adopt_all(bus_on(port), ask, print, config.bus.baud)
    if set(left) - {MOUTH_ID}:
        print(f"still missing: {name_of(*left)}; `duck setup --all` goes on from here")
        return 1
    print(
        "The set is complete" + (", without a mouth." if left else "."), "`duck doctor` examines all of it."
    )
    return 0


def _tell(facts: ServoFacts, config: Config) -> None:
    """Say that a servo is adopted, and what still differs at it."""
    from firmware_bridge.doctor.servo_checks import servo_deviations
    from firmware_bridge.robot.devices import model_name, name_of

    print(f"{name_of(facts.id)}: {model_name(facts.model)}, firmware {facts.firmware}, is set up")
    for finding in servo_deviations(facts, config.limits, config.battery):
        print(f"  {finding.what} is {finding.found}, not {finding.expected}: {finding.remedy}")
