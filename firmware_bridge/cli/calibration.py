"""What `duck calibrate` does: every check first, then the person, then the file."""

from __future__ import annotations

import argparse
import json
import shlex
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from firmware_bridge.calibrate.checking import CheckTask
from firmware_bridge.calibrate.dialogue import StoppedError, walk
from firmware_bridge.calibrate.draft import Draft
from firmware_bridge.calibrate.duck import checked_imu, limp_duck
from firmware_bridge.calibrate.tasks import ImuTasks, Surroundings, joint_tasks
from firmware_bridge.cli.calibration_file import Outcome, check_place, old_calibration
from firmware_bridge.cli.exits import EXIT_ERROR, EXIT_OK, EXIT_SIGNAL
from firmware_bridge.cli.key_console import KeyConsole
from firmware_bridge.cli.robot import port_of
from firmware_bridge.cli.tables import aligned
from firmware_bridge.config import Config, default_path, find_config, load_config
from firmware_bridge.drive.signals import StopSignals
from firmware_bridge.robot.imu import Imu
from firmware_bridge.robot.imu.opening import open_imu
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.port import SerialPort
from hardware.calibration import Calibration
from hardware.errors import ConfigError
from hardware.joints import JOINT_NAMES

FILE_NAME = "calibration.toml"
TICK_S = 0.02
"""Time between two looks at keys and servo [s]: a tenth of the servo's bus watchdog."""


@dataclass(frozen=True)
class _Plan:
    """A calibration whose files are in order.

    Attributes:
        config: the robot's settings.
        settings: their file, which need not exist.
        output: where to write.
        old: what holds where nothing is measured.
        joints: names of the joints to do.
        imu: whether to do the IMU.
    """

    config: Config
    settings: Path
    output: Path
    old: Calibration
    joints: tuple[str, ...]
    imu: bool


def calibrate(options: argparse.Namespace, signals: StopSignals) -> int:
    """Walk a person through the calibration as the options say, and return the exit code.

    Raises:
        DuckError: a file, the port or the duck is not in order, or the bus was lost; the old file is as it
            was.
    """
    plan = _check(options)
    port = port_of(options, plan.config)
    pause = partial(_pause, signals)
    with KeyConsole() as console:
        draft = Draft(plan.old)
        outcome = Outcome(plan.output, draft, console)
        if not options.check:
            outcome.begin(options.resume)
        try:
            with ExitStack() as stack:
                opened = stack.enter_context(SerialPort(port, plan.config.bus.baud))
                around = Surroundings(Bus(opened, plan.config.bus.baud), console, pause, draft)
                imu = stack.enter_context(open_imu(plan.config.imu, plan.old)) if plan.imu else None
                stack.enter_context(limp_duck(around.bus))
                return _look(around, imu) if options.check else _measure(plan, around, imu, outcome)
        except StoppedError as ended:
            console.tell(f"stopped: {ended}; the old file is as it was, and every servo is limp")
            return EXIT_SIGNAL + signals.received if signals.received else EXIT_ERROR
        finally:
            outcome.tell_unfinished(_again(options))


def _check(options: argparse.Namespace) -> _Plan:
    found = find_config(options.config)
    config = load_config(found)
    settings = found or default_path()
    output = options.output or config.calibration.file or settings.parent / FILE_NAME
    if not options.check:
        check_place(output)
    unknown = sorted(set(options.joints or ()) - {*JOINT_NAMES})
    if unknown:
        raise ConfigError(f"no joint is called {', '.join(unknown)}; the joints are {', '.join(JOINT_NAMES)}")
    everything = options.joints is None and not options.imu
    joints = tuple(options.joints or JOINT_NAMES) if everything or options.joints is not None else ()
    old = old_calibration(config.calibration.file if options.check else output, config.calibration.file)
    return _Plan(config, settings, output, old, joints, everything or options.imu)


def _again(options: argparse.Namespace) -> str:
    """Return the options of a command line that calibrates the same into the same file."""
    given: list[object] = []
    for name in ("config", "port", "output"):
        value = getattr(options, name)
        given += [f"--{name}", value] if value is not None else []
    given += ["--imu"] if options.imu else []
    given += ["--joints", *options.joints] if options.joints is not None else []
    return "".join(f" {shlex.quote(str(word))}" for word in given)


def _pause(signals: StopSignals) -> None:
    reason = signals.reason()
    if reason is not None:
        raise StoppedError(reason)
    time.sleep(TICK_S)


def _look(around: Surroundings, imu: Imu | None) -> int:
    """Show what the calibrated duck says."""
    look = CheckTask(around, checked_imu(around.bus, imu))
    walk([look.task()], around.console, around.pause)
    if look.result is None:
        return EXIT_ERROR
    print("\n".join([*aligned(look.result.rows(around.draft.old), right=(1, 2)), *look.result.remarks()]))
    return EXIT_OK if look.result.well else EXIT_ERROR


def _measure(plan: _Plan, around: Surroundings, imu: Imu | None, outcome: Outcome) -> int:
    """Walk through the tasks, and write what they brought."""
    tasks = joint_tasks(around, plan.joints)
    if plan.imu:
        tasks += ImuTasks(around, checked_imu(around.bus, imu)).tasks()
    walk([*map(outcome.remembered, tasks), outcome.task()], around.console, around.pause)
    around.console.tell(f"wrote {outcome.output}{_how_to_use(plan, outcome.output)}")
    return EXIT_OK


def _how_to_use(plan: _Plan, output: Path) -> str:
    """Return what is still to be done so that a drive uses the file; nothing where the settings name it."""
    if plan.config.calibration.file == output:
        return ""
    return (
        f"\nA drive uses it with `duck run --calibration {shlex.quote(str(output))}`, or always with\n"
        f"  [calibration]\n  file = {json.dumps(str(output.absolute()), ensure_ascii=False)}\n"
        f"in {plan.settings}"
    )
