from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from firmware_bridge.calibrate.duck import RawBoard, checked_imu, limp_duck
from firmware_bridge.emulator.devices import EmulatedImuBoard
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from hardware.errors import CalibrationError, DeviceError


@pytest.fixture
def flat_board(make_wire_port: Any, clock: Any) -> tuple[RawBoard, EmulatedImuBoard]:
    """A board whose axes are the trunk's, with a bias, on a bus of its own."""
    board = EmulatedImuBoard((1.0, 0.0, 0.0, 0.0), clock=clock, gyro_bias=(0.03, 0.0, -0.02))
    return RawBoard(Bus(make_wire_port([board]))), board


def test_the_board_speaks_of_its_own_axes_and_keeps_its_bias(flat_board: Any) -> None:
    raw, board = flat_board
    board.set_motion(np.zeros(3), np.array([0.8, 0.0, 0.0, 0.6]))  # all zero would mean: not started
    rate, gravity = raw.raw()
    assert np.allclose(rate, [0.03, 0.0, -0.02], atol=0.002)  # six counts of noise
    assert np.allclose(gravity, [0, 0, -1], atol=1e-3)


def test_a_heading_at_which_the_board_is_vague_is_refused(flat_board: Any, clock: Any) -> None:
    raw, board = flat_board
    for half_angle, good in ((1.40, True), (1.45, False), (1.57, False)):  # cos: 0.17, 0.12, 0
        clock.now += 0.02
        board.set_motion(np.zeros(3), np.array([np.cos(half_angle), 0.0, 0.0, np.sin(half_angle)]))
        if good:
            raw.raw()
        else:
            with pytest.raises(CalibrationError, match="turn the duck by a quarter about the vertical"):
                raw.raw()


def test_a_board_that_hangs_upside_down_is_not_helped_by_turning(flat_board: Any) -> None:
    raw, board = flat_board
    board.set_motion(np.zeros(3), np.array([0.1, 0.7, 0.7, 0.1]))
    with pytest.raises(CalibrationError, match=r"upside down in this pose.*tip the duck by another angle"):
        raw.raw()


def test_an_imu_with_a_link_of_its_own_is_checked_and_used(wire_bus: Bus) -> None:
    class Own:
        checked = False

        def check(self) -> None:
            self.checked = True

    own: Any = Own()
    assert checked_imu(wire_bus, own) is own and own.checked


def test_a_limp_duck_is_only_looked_at(wire_bus: Bus, wire_port: Any) -> None:
    with limp_duck(wire_bus):
        pass
    assert {packet.instruction for packet in wire_port.sent} <= {0x01, 0x02, 0x82}  # ping, read, sync read


def test_a_servo_that_is_stiff_at_the_end_is_made_limp_with_all_others(wire_bus: Bus, wire_port: Any) -> None:
    with limp_duck(wire_bus):
        wire_port.servo(31).poke(registers.TORQUE_ENABLE, 1)
    assert not wire_port.servo(31).torque


def test_a_servo_that_says_nothing_at_the_end_is_not_called_limp(wire_bus: Bus, wire_port: Any) -> None:
    with (
        pytest.raises(DeviceError, match=r"torque may still be on at head_pitch \(id 31\)"),
        limp_duck(wire_bus),
    ):
        wire_port.unplug(31)
