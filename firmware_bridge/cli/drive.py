"""The drive behind `duck run`: every check first, then the duck, then what happened."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from firmware_bridge.cli.audience import Audience
from firmware_bridge.cli.display import StatusPrinter, summary_data, summary_table
from firmware_bridge.cli.ending import Ending
from firmware_bridge.cli.recording import record_path, refuse_recording
from firmware_bridge.cli.robot import settings_of
from firmware_bridge.cli.sources import make_source, source_name
from firmware_bridge.cli.streams import flushed_output
from firmware_bridge.cli.targets import check_target, writing
from firmware_bridge.config import AUTO, BusConfig, CalibrationConfig, Config, LoopConfig
from firmware_bridge.control.network import Listen, listen_address, read_token
from firmware_bridge.drive import loop
from firmware_bridge.drive.options import Hooks, LoopOptions
from firmware_bridge.drive.realtime import realtime
from firmware_bridge.drive.signals import StopSignals
from firmware_bridge.drive.summary import Summary
from firmware_bridge.recording.description import describe
from firmware_bridge.recording.recorder import Dealings, Recorder
from firmware_bridge.robot.body import RealBody, powered_bus
from firmware_bridge.robot.imu.opening import open_imu
from firmware_bridge.skills.bundle import Bundle, find_bundle, load_bundle
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.find_port import find_port
from hardware.calibration import Calibration, load_calibration
from hardware.errors import BusError, ConfigError, PortError
from hardware.files import replacing

LOOK_S = 0.5
"""Time between two looks for the duck's port [s]."""


class _Plan(NamedTuple):
    """A drive whose files are in order.

    Attributes:
        options: of the command line.
        config: the robot's settings, in part replaced by the options.
        bundle: the policy.
        calibration: what the robot's parts deviate by.
        listen: where the network is served, None for nowhere.
        record: where to record to, None for nowhere.
    """

    options: argparse.Namespace
    config: Config
    bundle: Bundle
    calibration: Calibration
    listen: Listen | None
    record: Path | None


def drive(options: argparse.Namespace, signals: StopSignals) -> int:
    """Drive a duck as the options of `duck run` say, and return the exit code.

    Raises:
        DuckError: the bundle, the command, a file, the port or the duck is not in order; nothing moved.
    """
    plan = _check(options)
    with ExitStack() as stack:
        status = stack.enter_context(StatusPrinter(sys.stderr))
        own = make_source(options, plan.bundle, plan.config.gamepad, status.tell)
        stack.enter_context(closing(own))
        audience = Audience(status, own, plan.config.battery)
        if not options.no_socket:
            served = audience.served(source_name(options), plan.bundle.skills, options.socket, plan.listen)
            stack.enter_context(served)
        ending = Ending(signals, audience.source)
        if plan.record:  # opened before the duck, so that it is finished once the duck is limp
            dealings = Dealings(status.tell, signals.hurry)
            audience.record = stack.enter_context(_recorder(plan, plan.record, dealings)).add
        stack.enter_context(realtime() if plan.config.loop.realtime else nullcontext())
        try:
            imu = stack.enter_context(open_imu(plan.config.imu, plan.calibration))
            bus = stack.enter_context(_open(plan.config.bus, status.tell, ending.before_the_loop))
            body = RealBody(bus, plan.calibration, imu)
        except BusError as error:
            if ending.reason() is None:
                raise
            status.tell(f"stopped: {error}")
            return ending.code()
        audience.bus = body.stats
        summary, cpu_share = _run(plan, body, audience, ending)
    code = ending.code(summary.mode)
    _tell(plan, summary, cpu_share, code)
    return code


def _check(options: argparse.Namespace) -> _Plan:
    config = _config(options)
    listen = _listen(options)
    if options.report:
        check_target(options.report)
        refuse_recording(options.report)
    calibration = _calibration(config)
    record = record_path(options.record) if options.record else None
    return _Plan(options, config, load_bundle(find_bundle(options.bundle)), calibration, listen, record)


def _calibration(config: Config) -> Calibration:
    file = config.calibration.file
    if file is None and not config.imu.on_bus:
        raise ConfigError(
            f"only a calibration file tells how an IMU of kind {config.imu.kind} is mounted; make one with "
            "`duck calibrate`"
        )
    return load_calibration(file) if file else Calibration()


def _recorder(plan: _Plan, path: Path, dealings: Dealings) -> Recorder:
    name = find_bundle(plan.options.bundle).name
    meta = describe(plan.bundle, name, plan.config.gains.p_gain, plan.calibration)
    return Recorder(path, meta, plan.config.recording, dealings)


def _config(options: argparse.Namespace) -> Config:
    """Return the robot's settings, with what the command line says in their place."""
    config = settings_of(options)
    port = config.bus.port if options.port is None else options.port
    wait_s = config.bus.wait_s if options.wait is None else options.wait
    return replace(
        config,
        bus=BusConfig(port, config.bus.baud, wait_s),
        calibration=CalibrationConfig(options.calibration or config.calibration.file),
        loop=LoopConfig(options.realtime or config.loop.realtime),
    )


def _listen(options: argparse.Namespace) -> Listen | None:
    if options.no_socket and (options.remote or options.listen):
        raise ConfigError("--no-socket leaves --remote and --listen without what they need; leave it out")
    if (options.listen is None) is not (options.token is None):
        raise ConfigError("--listen HOST:PORT and --token FILE need each other; give both or neither")
    return Listen(*listen_address(options.listen), read_token(options.token)) if options.listen else None


def _open(
    bus: BusConfig, tell: Callable[[str], None], stop: Callable[[], str | None]
) -> AbstractContextManager[Bus]:
    """Return the duck's bus, still to be opened.

    Raises:
        PortError: it is to be looked for, and no port has a duck on it in time.
    """
    begin = time.monotonic()
    path = _find_port(bus, tell, stop) if bus.port == AUTO else bus.port
    left = max(0.0, begin + bus.wait_s - time.monotonic())
    return powered_bus(path, baud=bus.baud, wait_s=left, report=tell, stop=stop)


def _find_port(bus: BusConfig, tell: Callable[[str], None], stop: Callable[[], str | None]) -> str:
    """Look for the duck's port until its time is over, for a duck without power answers on none."""
    give_up = time.monotonic() + bus.wait_s
    waits = False
    while True:
        try:
            return find_port(bus.baud)
        except PortError as error:
            if stop() is not None or time.monotonic() >= give_up:
                raise
            if not waits:
                tell(f"waiting: {error}")
            waits = True
            time.sleep(LOOK_S)


def _run(plan: _Plan, body: RealBody, audience: Audience, ending: Ending) -> tuple[Summary, float]:
    """Drive, and return what happened and the share of a core that it took."""
    config = plan.config
    options = LoopOptions(
        plan.options.skill, plan.options.seconds, config.limits, config.battery, config.gains.p_gain
    )
    hooks = Hooks(
        stop=ending.reason,
        hurry=ending.hurry,
        on_mode=audience.on_mode,
        on_news=audience.tell,
        on_tick=audience.on_tick,
    )
    ending.before_the_loop()
    wall, cpu = time.perf_counter(), time.process_time()
    summary = loop.run(body, plan.bundle, audience.source, options, hooks)
    return summary, (time.process_time() - cpu) / (time.perf_counter() - wall)


def _tell(plan: _Plan, summary: Summary, cpu_share: float, code: int) -> None:
    if plan.options.report:
        skill = plan.bundle.skill(plan.options.skill).name
        data = {"skill": skill, "exit_code": code, **summary_data(summary, cpu_share)}
        _write_json(plan.options.report, data)
    with suppress(OSError), flushed_output():  # the exit code tells the end, whoever reads the table or not
        print(summary_table(summary, cpu_share))


def _write_json(path: Path, data: dict[str, Any]) -> None:
    with writing(path):
        # A device, or a link such as /dev/stdout, is written to and not replaced.
        special = path.is_symlink() or (path.exists() and not path.is_file())
        with nullcontext(path) if special else replacing(path) as target:
            target.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
