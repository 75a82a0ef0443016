"""The IMU: one interface, a driver for each kind; see `opening.open_imu` and, on the servo bus, `BusImu`."""

from firmware_bridge.robot.imu.board import (
    BOARD_ID,
    MODEL_NUMBER,
    RAD_PER_S_PER_COUNT,
    SAMPLE_ADDRESS,
    SAMPLE_COUNTER,
    SAMPLE_LENGTH,
    SAMPLE_PERIOD_S,
    STATUS,
    STATUS_GOOD,
    STATUS_TEXT,
    BusImu,
)
from firmware_bridge.robot.imu.sample import (
    Imu,
    ImuFrozenError,
    ImuInvalidError,
    ImuNotStartedError,
    ImuSample,
    ImuSilentError,
    ImuStaleError,
)

__all__ = [
    "BOARD_ID",
    "MODEL_NUMBER",
    "RAD_PER_S_PER_COUNT",
    "SAMPLE_ADDRESS",
    "SAMPLE_COUNTER",
    "SAMPLE_LENGTH",
    "SAMPLE_PERIOD_S",
    "STATUS",
    "STATUS_GOOD",
    "STATUS_TEXT",
    "BusImu",
    "Imu",
    "ImuFrozenError",
    "ImuInvalidError",
    "ImuNotStartedError",
    "ImuSample",
    "ImuSilentError",
    "ImuStaleError",
]
