"""`duck run`: every check first, then the drive, then what happened."""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np

from firmware_bridge import loop
from firmware_bridge.body import open_body
from firmware_bridge.cli.exits import EXIT_FALLEN, EXIT_FAULT, EXIT_OK, EXIT_SIGNAL
from firmware_bridge.cli.status import StatusPrinter, summary_data, summary_table
from firmware_bridge.clock import Ticker
from firmware_bridge.commands import CommandSource, FixedCommand, LineCommands
from firmware_bridge.manifest import Skill
from firmware_bridge.modes import Mode
from firmware_bridge.safety import refuse_lying
from firmware_bridge.signals import StopSignals
from firmware_bridge.skills import load_bundle, shipped_bundle
from hardware import contract
from hardware.calibration import Calibration, load_calibration
from hardware.errors import ConfigError


def run_command(options: argparse.Namespace) -> int:
    """Drive a duck and return the exit code.

    Raises:
        DuckError: the bundle, the command, a file, the port or the duck is not in order; nothing moved.
    """
    with StopSignals() as signals:
        bundle = load_bundle(options.bundle or shipped_bundle())
        skill = bundle.skill(options.skill)
        commands = _commands(options, skill)
        calibration = load_calibration(options.calibration) if options.calibration else Calibration()
        if options.json and not options.json.parent.is_dir():
            raise ConfigError(
                f"cannot write {options.json}: there is no folder {options.json.parent}; make it"
            )
        ticker = Ticker()
        with StatusPrinter(sys.stderr, ticker) as status, open_body(options.port, calibration) as body:
            refuse_lying(body.read().gravity)
            hooks = loop.Hooks(signals.reason, status.on_mode, status.on_tick, ticker)
            wall, cpu = time.perf_counter(), time.process_time()
            summary = loop.run(body, bundle, skill, commands, options.seconds, hooks)
            cpu_share = (time.process_time() - cpu) / (time.perf_counter() - wall)
        code = _exit_code(summary.mode, signals)
        if options.json:  # before the print, which fails when nobody reads it
            _write_json(options, {"skill": skill.name, "exit_code": code, **summary_data(summary, cpu_share)})
        print(summary_table(summary, cpu_share))
    return code


def _commands(options: argparse.Namespace, skill: Skill) -> CommandSource:
    if options.stdin:
        return LineCommands(sys.stdin.fileno())
    low, high = np.array(skill.command_low), np.array(skill.command_high)
    if options.command is None:
        return FixedCommand(np.clip(np.zeros(3), low, high).tolist())
    command = np.array(options.command)
    contract.check_command(command, low, high)
    return FixedCommand(options.command)


def _exit_code(mode: Mode, signals: StopSignals) -> int:
    if mode is Mode.STOPPED:
        return EXIT_SIGNAL + signals.received if signals.received else EXIT_OK
    return EXIT_FALLEN if mode is Mode.FALLEN else EXIT_FAULT


def _write_json(options: argparse.Namespace, data: dict[str, object]) -> None:
    try:
        options.json.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {options.json}: {error.strerror}; choose another file") from error
