"""The devices on a duck's bus: their ids, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping

from firmware_bridge.robot.imu import BOARD_ID
from hardware import servo
from hardware.joints import JOINTS, MOUTH_ID, SERVO_IDS

ALL_SERVO_IDS = (*SERVO_IDS, MOUTH_ID)
"""Ids of the fourteen joints and of the mouth, which a duck may be without."""
REQUIRED_IDS = (*SERVO_IDS, BOARD_ID)
"""Ids without which a duck whose IMU is the board cannot run: those that answer in every tick. With another
IMU it needs `SERVO_IDS` alone."""
NAMES: Mapping[int, str] = {
    **{joint.servo_id: joint.name for joint in JOINTS},
    MOUTH_ID: "mouth",
    BOARD_ID: "IMU board",
}
"""Name of each device of a duck, by id."""


def name_of(*devices: int) -> str:
    """Return `left_knee (id 23)` and the like, separated by commas."""
    return ", ".join(f"{NAMES.get(device, 'unknown device')} (id {device})" for device in devices)


def model_name(number: int) -> str:
    """Return a model's name with its number, as in `XL330-M288 (1200)`."""
    return f"{servo.MODEL_NAMES.get(number, 'an unknown model')} ({number})"
