"""What lasts from sample to sample: the running mean of the voltage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from firmware_bridge.drive.limits import Battery, Limits
from firmware_bridge.drive.modes import Mode, Order
from firmware_bridge.drive.watch import Watch
from firmware_bridge.robot.body import BodySample
from firmware_bridge.robot.health import Health


@pytest.fixture
def judge() -> Callable[[Health], Order | None]:
    """Judges samples of an upright, running duck whose servos' rail is the pack."""
    watch = Watch(Limits(), Battery(rail_is_pack=True), lambda text: None)
    zero, down = np.zeros(14), np.array([0.0, 0.0, -1.0])

    def give(health: Health) -> Order | None:
        return watch.judge(BodySample(0.0, zero, zero, zero, np.zeros(3), down, (), health), 1, Mode.RUN)

    return give


def test_each_measurement_of_the_voltage_counts_once_however_often_other_things_are_measured(
    judge: Callable[[Health], Order | None], make_health: Callable[..., Any]
) -> None:
    judge(make_health(voltage=np.full(14, 7.0)))
    for second in range(1, 6):  # 6.9, 6.81, 6.729, 6.656, 6.590: empty at 6.6
        voltage = np.full(14, 6.0)
        orders = [judge(make_health(voltage=voltage)) for _ in range(3)]
        assert [order is not None for order in orders] == [second == 5] * 3
