"""Whether an IMU with a link of its own works; the board on the bus is part of the survey."""

from __future__ import annotations

from collections.abc import Iterator

from firmware_bridge.doctor.findings import Finding, Level
from firmware_bridge.robot.imu.opening import open_imu
from firmware_bridge.robot.imu_config import ImuConfig
from hardware.calibration import Calibration
from hardware.errors import BusError, ConfigError


def imu_deviations(config: ImuConfig) -> Iterator[Finding]:
    """Set the IMU up, watch it for a quarter second, and find what is wrong with it."""
    try:
        with open_imu(config, Calibration()) as imu:
            if imu is not None:
                imu.check()
                yield from _advised(config, imu.advice())
    except (BusError, ConfigError) as error:
        yield Finding(
            where=f"IMU {config.kind}",
            what="samples",
            found="none",
            expected="live ones",
            level=Level.CANNOT_RUN,
            effect="the duck does not know where down is",
            remedy=str(error),
        )


def _advised(config: ImuConfig, advice: str | None) -> Iterator[Finding]:
    if advice is not None:
        yield Finding(
            where=f"IMU {config.kind}",
            what="calibration",
            found="not done",
            expected="done",
            level=Level.WARNING,
            effect="it may drift at first",
            remedy=advice,
        )
