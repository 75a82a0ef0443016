"""What `duck calibrate` does: every check first, then the person, then the file."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from firmware_bridge.calibrate.checking import CheckTask
from firmware_bridge.calibrate.dialogue import Console, StoppedError, Task, walk
from firmware_bridge.calibrate.draft import Draft
from firmware_bridge.calibrate.duck import checked_imu, limp_duck
from firmware_bridge.calibrate.tasks import ImuTasks, Surroundings, joint_tasks
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
from hardware.calibration import Calibration, load_calibration, save_calibration
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
        DuckError: a file, the port or the duck is not in order, or the bus was lost; nothing was written.
    """
    plan = _check(options)
    port = port_of(options, plan.config)
    pause = partial(_pause, signals)
    with KeyConsole() as console:
        try:
            with ExitStack() as stack:
                opened = stack.enter_context(SerialPort(port, plan.config.bus.baud))
                around = Surroundings(Bus(opened, plan.config.bus.baud), console, pause, Draft(plan.old))
                imu = stack.enter_context(open_imu(plan.config.imu, plan.old)) if plan.imu else None
                stack.enter_context(limp_duck(around.bus))
                return _look(around, imu) if options.check else _measure(plan, around, imu)
        except StoppedError as ended:
            console.tell(f"stopped: {ended}; nothing was written, and every servo is limp")
            return EXIT_SIGNAL + signals.received if signals.received else EXIT_ERROR


def _check(options: argparse.Namespace) -> _Plan:
    found = find_config(options.config)
    config = load_config(found)
    settings = found or default_path()
    output = options.output or config.calibration.file or settings.parent / FILE_NAME
    if not options.check:
        _refuse_place(output)
    unknown = sorted(set(options.joints or ()) - {*JOINT_NAMES})
    if unknown:
        raise ConfigError(f"no joint is called {', '.join(unknown)}; the joints are {', '.join(JOINT_NAMES)}")
    everything = options.joints is None and not options.imu
    joints = tuple(options.joints or JOINT_NAMES) if everything or options.joints is not None else ()
    old = _old(config.calibration.file if options.check else output, config.calibration.file)
    return _Plan(config, settings, output, old, joints, everything or options.imu)


def _old(*places: Path | None) -> Calibration:
    """Return the first calibration that there is.

    Raises:
        ConfigError: it is not valid; nothing else is taken in its place.
    """
    found = next((place for place in places if place and place.exists()), None)
    try:
        return load_calibration(found) if found else Calibration()
    except ConfigError as error:
        raise ConfigError(f"{error}; it is not written over: correct it, or move it away") from error


def _refuse_place(output: Path) -> None:
    """Refuse a file that could not be written at the end of all the work."""
    if output.exists() and not output.is_file():
        raise ConfigError(f"cannot write {output}: it is no file; name one, also one that does not exist yet")
    folder = output.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot make the folder {folder}: {error.strerror}; choose another --output"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"cannot write into {folder}: no permission; choose another --output")


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


def _measure(plan: _Plan, around: Surroundings, imu: Imu | None) -> int:
    """Walk through the tasks, and write what they brought."""
    tasks = joint_tasks(around, plan.joints)
    if plan.imu:
        tasks += ImuTasks(around, checked_imu(around.bus, imu)).tasks()
    written: list[Path] = []
    tasks.append(_last_task(plan, around.draft, around.console, written.append))
    walk(tasks, around.console, around.pause)
    return EXIT_OK if written else EXIT_ERROR


def _last_task(plan: _Plan, draft: Draft, console: Console, note: Callable[[Path], None]) -> Task:
    def show() -> str:
        if draft.empty:
            return "\nNothing was measured. Enter or q ends; b goes back."
        lines = [*aligned(draft.rows(), right=(1, 2)), *draft.remarks()]
        return "\n".join(["", *lines, f"Enter writes {plan.output} | b back | q quit, writing nothing"])

    def write() -> None:
        if draft.empty:
            raise StoppedError("there is nothing to write")
        save_calibration(draft.calibration(), plan.output)
        note(plan.output)
        console.tell(f"wrote {plan.output}{_how_to_use(plan)}")

    def leave() -> None:
        raise StoppedError("you left the old file as it is")

    return Task(begin=show, measure=str, keep=write, skip=leave, ready=True)


def _how_to_use(plan: _Plan) -> str:
    """Return what is still to be done so that a drive uses the file; nothing where the settings name it."""
    if plan.config.calibration.file == plan.output:
        return ""
    return (
        f"\nA drive uses it with `duck run --calibration {plan.output}`, or always with\n  [calibration]\n"
        f'  file = "{plan.output.absolute()}"\nin {plan.settings}'
    )
