"""Per-robot calibration: joint zeros, the IMU's mounting and its gyroscope's bias, in one strict TOML file.

The file holds what differs between two ducks built from the same parts; `duck calibrate` writes it. A duck
without a file uses `Calibration()`: no offsets, no bias, and the mounting of the bus IMU board (its z axis
along the trunk's x).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, sqrt
from pathlib import Path
from typing import Any

from hardware.errors import ConfigError
from hardware.files import read_bounded, replacing
from hardware.joints import JOINT_NAMES, NUM_JOINTS

IMU_BOARD_MOUNTING = (sqrt(0.5), 0.0, sqrt(0.5), 0.0)
"""Quaternion (w, x, y, z) that turns the bus board's vectors into the trunk frame: +90 degrees about y."""
MAX_OFFSET = 0.5
"""Largest joint offset a file may hold [rad]; a horn one spline tooth off is 0.27 rad."""
MAX_GYRO_BIAS = 0.2
"""Largest bias of the gyroscope about an axis that a file may hold [rad/s]; that of a BNO055 is
up to 3 deg/s, 0.052 rad/s, that of a BMI088 or an LSM6DSV16X is 1 deg/s (data sheets)."""
MAX_FILE_BYTES = 16 * 1024
Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


@dataclass(frozen=True)
class Calibration:
    """What one duck's parts deviate by.

    Attributes:
        joint_offsets: servo angle at the joint's zero, in joint order (14 values) [rad].
        imu_mounting: quaternion (w, x, y, z) from IMU axes to trunk axes.
        gyro_bias: what the gyroscope says at rest, about the IMU's own axes [rad/s]; it is taken off before
            the mounting turns a rate into the trunk's axes.
    """

    joint_offsets: tuple[float, ...] = (0.0,) * NUM_JOINTS
    imu_mounting: Quaternion = field(default=IMU_BOARD_MOUNTING)
    gyro_bias: Vector = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if len(self.joint_offsets) != NUM_JOINTS:
            raise ConfigError(f"joint_offsets needs {NUM_JOINTS} values, not {len(self.joint_offsets)}")
        for name, offset in zip(JOINT_NAMES, self.joint_offsets, strict=True):
            if not (isfinite(offset) and abs(offset) <= MAX_OFFSET):
                raise ConfigError(f"offset of {name} is {offset!r} rad; it must be within +-{MAX_OFFSET} rad")
        if len(self.imu_mounting) != 4:
            raise ConfigError(f"imu_mounting needs 4 values (w, x, y, z), not {len(self.imu_mounting)}")
        norm = sqrt(sum(q * q for q in self.imu_mounting))
        if not (isfinite(norm) and abs(norm - 1) <= 1e-3):
            raise ConfigError(f"imu_mounting {self.imu_mounting} has norm {norm:g}; a rotation has norm 1")
        if len(self.gyro_bias) != 3:
            raise ConfigError(f"gyro_bias needs 3 values (x, y, z), not {len(self.gyro_bias)}")
        for axis, bias in zip("xyz", self.gyro_bias, strict=True):
            if not (isfinite(bias) and abs(bias) <= MAX_GYRO_BIAS):
                raise ConfigError(
                    f"gyro_bias about {axis} is {bias!r} rad/s; it must be within +-{MAX_GYRO_BIAS} rad/s"
                )


@dataclass(frozen=True)
class Measured:
    """Part of a calibration: what was measured, or what a file holds.

    Attributes:
        joint_offsets: servo angle at the joint's zero, by joint [rad].
        imu_mounting: quaternion (w, x, y, z) from IMU axes to trunk axes, None for none.
        gyro_bias: what the gyroscope says at rest, about the IMU's own axes [rad/s], None for none.
    """

    joint_offsets: Mapping[str, float] = field(default_factory=dict)
    imu_mounting: Quaternion | None = None
    gyro_bias: Vector | None = None

    def over(self, old: Calibration) -> Calibration:
        """Return a calibration with what was measured in its place.

        Raises:
            ConfigError: a value is none that a duck can have.
        """
        pairs = zip(JOINT_NAMES, old.joint_offsets, strict=True)
        return Calibration(
            tuple(self.joint_offsets.get(name, offset) for name, offset in pairs),
            old.imu_mounting if self.imu_mounting is None else self.imu_mounting,
            old.gyro_bias if self.gyro_bias is None else self.gyro_bias,
        )


def load_calibration(path: Path) -> Calibration:
    """Read a calibration file; what it does not hold is as in `Calibration()`.

    Raises:
        ConfigError: the file is absent, too large, not TOML, or holds an unknown or bad value.
    """
    return load_measured(path).over(Calibration())


def load_measured(path: Path) -> Measured:
    """Return what a calibration file holds.

    Raises:
        ConfigError: the file is absent, too large, not TOML, or holds an unknown or bad value.
    """
    content = read_bounded(path, MAX_FILE_BYTES, ConfigError)
    try:
        measured = _parse(tomllib.loads(content.decode("utf-8")))
        measured.over(Calibration())
    except (ValueError, OverflowError, RecursionError) as error:  # huge numbers and deep nesting are TOML too
        raise ConfigError(f"{path} is no valid calibration: {error}") from error
    return measured


def save_calibration(calibration: Calibration, path: Path) -> None:
    """Write a calibration file that reads back equal; the old file stays until the new one is whole.

    Raises:
        ConfigError: the file cannot be written there.
    """
    offsets = dict(zip(JOINT_NAMES, calibration.joint_offsets, strict=True))
    save_measured(Measured(offsets, calibration.imu_mounting, calibration.gyro_bias), path)


def save_measured(measured: Measured, path: Path) -> None:
    """Write a calibration file with nothing but what was measured, as `save_calibration` does.

    Raises:
        ConfigError: the file cannot be written there.
    """
    try:
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in _lines(measured))
            file.flush()
            os.fsync(file.fileno())  # a duck's battery may be pulled at any moment
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; choose another place") from error


def _lines(measured: Measured) -> Iterator[str]:
    yield "# What this duck's parts deviate by. `duck calibrate` measures it."
    yield from ("", "# Angle of each servo where its joint is at zero [rad].", "[joint_offsets]")
    yield from (f"{name} = {float(offset)!r}" for name, offset in measured.joint_offsets.items())
    yield from ("", "[imu]")
    if measured.imu_mounting is not None:
        yield "# Rotation from the IMU's axes to the trunk's, as a quaternion (w, x, y, z)."
        yield f"mounting = {_row(measured.imu_mounting)}"
    if measured.gyro_bias is not None:
        yield "# What the gyroscope says at rest, about the IMU's axes (x, y, z) [rad/s]."
        yield f"gyro_bias = {_row(measured.gyro_bias)}"


def _row(values: Sequence[float]) -> str:
    return f"[{', '.join(repr(float(value)) for value in values)}]"


def _parse(data: dict[str, Any]) -> Measured:
    _refuse_unknown("the file", data, {"joint_offsets", "imu"})
    offsets, imu = _table(data, "joint_offsets"), _table(data, "imu")
    _refuse_unknown("[joint_offsets]", offsets, set(JOINT_NAMES))
    _refuse_unknown("[imu]", imu, {"mounting", "gyro_bias"})
    mounting: Quaternion | None = None
    bias: Vector | None = None
    if "mounting" in imu:
        w, x, y, z = _numbers(imu, "mounting", 4, "four numbers (w, x, y, z)")
        mounting = (w, x, y, z)
    if "gyro_bias" in imu:
        x, y, z = _numbers(imu, "gyro_bias", 3, "three numbers (x, y, z)")
        bias = (x, y, z)
    return Measured({name: _number(name, offset) for name, offset in offsets.items()}, mounting, bias)


def _numbers(imu: dict[str, Any], key: str, count: int, what: str) -> list[float]:
    values = imu[key]
    if not isinstance(values, list) or len(values) != count:
        raise ConfigError(f"[imu] {key} must be {what}, not {values!r}")
    return [_number(f"[imu] {key}", value) for value in values]


def _table(data: dict[str, Any], name: str) -> dict[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{name} must be a table, not {table!r}")
    return table


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{name} must be a number, not {value!r}")
    return float(value)


def _refuse_unknown(where: str, table: dict[str, Any], known: set[str]) -> None:
    for key in table:
        if key not in known:
            raise ConfigError(f"{where} holds the unknown key {key!r}; valid keys are {sorted(known)}")
