"""One robot's settings: what differs between two ducks, or between two owners, in one strict TOML file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from firmware_bridge.commands.gamepad_map import GamepadMap
from firmware_bridge.drive.limits import Battery, Limits
from firmware_bridge.recording.space import Space
from firmware_bridge.robot.imu_config import ImuConfig
from firmware_bridge.toml_sections import read_sections, render
from hardware import servo
from hardware.errors import ConfigError
from hardware.files import replacing

AUTO = "auto"
"""The port that is looked for."""
CONFIG_VARIABLE = "MICRODUCK_CONFIG"
"""Environment variable that names the file."""
MOST_WAIT_S = 86_400.0
"""Longest wait for the servos' power [s], a day."""


@dataclass(frozen=True)
class BusConfig:
    """How the servos are reached.

    Attributes:
        port: serial port, for example "/dev/ttyAMA0"; "auto" looks for the one at which the duck answers.
        baud: speed of the bus [1/s].
        wait_s: how long a drive waits for servos that have no power yet [s].
    """

    port: str = AUTO
    baud: int = servo.BAUD
    wait_s: float = 10.0

    def __post_init__(self) -> None:
        if not self.port or not self.port.isprintable():
            raise ConfigError(f'port is {self.port!r}; name a device such as "/dev/ttyAMA0", or "{AUTO}"')
        if self.baud not in servo.BAUD_CODES:
            rates = ", ".join(map(str, servo.BAUD_CODES))
            raise ConfigError(f"baud is {self.baud}, which the servos cannot do; choose one of {rates}")
        if not 0 <= self.wait_s <= MOST_WAIT_S:
            raise ConfigError(f"wait_s is {self.wait_s:g} s; it must be in [0, {MOST_WAIT_S:g}]")


@dataclass(frozen=True)
class GainsConfig:
    """How stiff the joints are.

    Attributes:
        p_gain: position P register of every servo [1]. Left out it is the bundle's, for which the policy was
            trained; another makes the duck walk differently.
    """

    p_gain: int | None = None

    def __post_init__(self) -> None:
        if self.p_gain is not None and not 1 <= self.p_gain <= servo.P_GAIN_LIMIT:
            raise ConfigError(f"p_gain is {self.p_gain}; it must be in [1, {servo.P_GAIN_LIMIT}]")


@dataclass(frozen=True)
class CalibrationConfig:
    """What this duck's parts deviate by.

    Attributes:
        file: file with the joints' offsets and the IMU's mounting; a relative path starts at the folder of
            the file that names it. Left out, the parts are taken as they are built.
    """

    file: Path | None = None

    def __post_init__(self) -> None:
        try:
            _ = self.file and self.file.expanduser()
        except RuntimeError as error:  # ~ann, where there is no ann
            raise ConfigError(
                f"file is {str(self.file)!r}, and there is no such home folder; write the whole path"
            ) from error


@dataclass(frozen=True)
class LoopConfig:
    """How the control loop runs.

    Attributes:
        realtime: whether to ask the system for real-time priority and locked memory, which needs the right
            to both.
    """

    realtime: bool = False


@dataclass(frozen=True)
class Config:
    """Settings of one MicroDuck. Every key may be left out; `duck config init` writes the defaults.

    Words in brackets are units, or tell where a number comes from: [daemon] is the duck's own daemon,
    [manual] that of the servo, [simulated] the shipped walker on the simulated duck.
    """

    bus: BusConfig = field(default_factory=BusConfig)
    gains: GainsConfig = field(default_factory=GainsConfig)
    limits: Limits = field(default_factory=Limits)
    battery: Battery = field(default_factory=Battery)
    gamepad: GamepadMap = field(default_factory=GamepadMap)
    imu: ImuConfig = field(default_factory=ImuConfig)
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)
    recording: Space = field(default_factory=Space)

    def __post_init__(self) -> None:
        servos, own = self.bus.port, self.imu.port
        if own and servos != AUTO and os.path.realpath(own) == os.path.realpath(servos):
            raise ConfigError(
                f"[imu] port is {own!r}, where [bus] port {servos!r} has the servos; name the IMU's own port"
            )


def default_path(environment: Mapping[str, str] = os.environ, home: Callable[[], Path] = Path.home) -> Path:
    """Return where the settings are kept: `$MICRODUCK_CONFIG`, or `~/.config/microduck/duck.toml`.

    Raises:
        ConfigError: this user has no home folder.
    """
    if named := environment.get(CONFIG_VARIABLE):
        return Path(named)
    try:
        return home() / ".config" / "microduck" / "duck.toml"
    except RuntimeError as error:
        raise ConfigError(f"this user has no home folder; name a file in ${CONFIG_VARIABLE}") from error


def find_config(named: Path | None, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file to read: the one that is named, or that of `default_path`; None if there is none.

    A file that the user or the environment names is returned even if it does not exist, so that reading it
    says so.
    """
    path = named or default_path(environment)
    return path if named or environment.get(CONFIG_VARIABLE) or path.exists() else None


def load_config(path: Path | None) -> Config:
    """Read a file of settings; None stands for the defaults.

    Raises:
        ConfigError: as for `toml_sections.read_sections`.
    """
    if path is None:
        return Config()
    if not path.exists() and str(path) == os.environ.get(CONFIG_VARIABLE):
        raise ConfigError(f"there is no {path}, which ${CONFIG_VARIABLE} names; `duck config init` makes it")
    config = read_sections(path, Config)
    if config.calibration.file is None:
        return config
    return replace(config, calibration=CalibrationConfig(path.parent / config.calibration.file.expanduser()))


def write_default(path: Path, overwrite: bool) -> None:
    """Write the commented defaults, making the folder.

    Raises:
        ConfigError: the file exists and is not to be overwritten, or cannot be written.
    """
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} is no file; name one, also one that does not exist yet")
    if path.exists() and not overwrite:
        raise ConfigError(f"{path} exists already; edit it, name another file, or replace it with --force")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(render(Config()), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; choose another place") from error
