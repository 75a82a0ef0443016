from __future__ import annotations

from math import cos, radians, sin

import numpy as np
import pytest

from firmware_bridge.robot.imu import BusImu, ImuFrozenError, ImuInvalidError, ImuNotStartedError
from firmware_bridge.robot.imu import board as board_module
from firmware_bridge.wire import registers
from firmware_bridge.wire.bus import Bus
from hardware.errors import BusTimeoutError, DeviceError, ImuError

UPSIDE_DOWN = (0.0, 1.0, 0.0, 0.0)


def block(rate: tuple[int, int, int], axis: tuple[float, float, float]) -> bytes:
    return np.array(rate, "<i2").tobytes() + np.array(axis, "<f2").tobytes()


def board_pitched(angle: float) -> tuple[float, float, float]:
    """Vector part of the board's quaternion, a quarter turn ahead of a trunk pitched nose down."""
    half = (radians(90) + angle) / 2
    return (0.0, sin(half), 0.0)


@pytest.fixture
def board(wire_bus: Bus) -> BusImu:
    return BusImu(wire_bus)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch, clock) -> None:
    """Let time pass only by sleeping, for the driver and for the emulated board."""

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(board_module, "monotonic", clock)
    monkeypatch.setattr(board_module, "sleep", sleep)


def test_upright_trunk_feels_gravity_straight_down(board: BusImu) -> None:
    sample = board.decode(block((0, 0, 0), board_pitched(0.0)))
    assert sample.gravity == pytest.approx([0, 0, -1], abs=1e-3)
    assert np.linalg.norm(sample.gravity) == pytest.approx(1.0)
    assert np.all(sample.angular_velocity == 0.0)


def test_nose_down_by_thirty_degrees_brings_gravity_forward(board: BusImu) -> None:
    sample = board.decode(block((0, 0, 0), board_pitched(radians(30))))
    assert sample.gravity == pytest.approx([0.5, 0, -cos(radians(30))], abs=2e-3)


@pytest.mark.parametrize(
    ("raw", "trunk"),
    [((0, 0, 1000), (1, 0, 0)), ((0, 1000, 0), (0, 1, 0)), ((1000, 0, 0), (0, 0, -1))],
)
def test_rates_turn_from_board_to_trunk_axes(
    board: BusImu, raw: tuple[int, int, int], trunk: tuple[int, int, int]
) -> None:
    rate = board.decode(block(raw, board_pitched(0.0))).angular_velocity
    assert rate == pytest.approx(np.array(trunk) * radians(17.5))  # 1000 counts of 17.5 mdps


def test_board_mounted_upside_down_still_shows_gravity_down(wire_bus: Bus) -> None:
    """The board lies turned about its x axis: its own z points along gravity."""
    flipped = BusImu(wire_bus, UPSIDE_DOWN)
    sample = flipped.decode(block((1000, 1000, 1000), (1.0, 0.0, 0.0)))
    assert sample.gravity == pytest.approx([0, 0, -1], abs=1e-6)
    assert sample.angular_velocity == pytest.approx(np.array([1, -1, -1]) * radians(17.5))


def test_orientation_of_zeros_means_not_started_and_not_upright(board: BusImu) -> None:
    with pytest.raises(ImuNotStartedError, match="has not started"):
        board.decode(bytes(12))
    with pytest.raises(ImuNotStartedError):
        board.decode(block((5, -3, 1), (0, 0, 0)))


@pytest.mark.parametrize("axis", [(np.nan, 0, 0), (np.inf, 0, 0), (1.0, 0.15, 0.0), (-1.0, 1.0, 1.0)])
def test_numbers_that_are_no_orientation_are_refused(board: BusImu, axis: tuple[float, float, float]) -> None:
    with pytest.raises(ImuInvalidError, match="power the board off and on"):
        board.decode(block((0, 0, 0), axis))


def test_orientation_slightly_too_long_from_rounding_is_used(board: BusImu) -> None:
    sample = board.decode(block((0, 0, 0), (0.0, 1.005, 0.0)))
    # The board half a turn about y is the trunk a quarter turn nose down.
    assert sample.gravity == pytest.approx([1, 0, 0], abs=1e-6)


def test_isolated_repeats_are_healthy(board: BusImu) -> None:
    for count in range(2000):
        data = block((count % 1000, 0, 0), board_pitched(0.0))
        board.decode(data)
        if count % 220 == 0:
            board.decode(data)


def test_twenty_fifth_identical_sample_is_frozen_and_a_new_one_heals(board: BusImu) -> None:
    stuck = block((7, 7, 7), board_pitched(0.0))
    for _ in range(24):
        board.decode(stuck)
    with pytest.raises(ImuFrozenError, match="the same sample 25 times in a row"):
        board.decode(stuck)
    with pytest.raises(ImuFrozenError, match="26 times"):
        board.decode(stuck)
    board.decode(block((8, 7, 7), board_pitched(0.0)))


def turning(rad_per_s: float) -> tuple[int, int, int]:
    return (round(rad_per_s / radians(0.0175)), 0, 0)


def test_orientation_that_stands_still_while_the_gyroscope_turns_is_frozen_until_it_moves(
    board: BusImu,
) -> None:
    # 0.6 rad/s for 0.25 s are 0.15 rad, and a little of that has faded.
    still = board_pitched(0.0)
    for tick in range(12):
        board.decode(block(turning(0.6 + 0.001 * tick), still))
    with pytest.raises(ImuFrozenError, match="while its orientation stood still"):
        for tick in range(12):
            board.decode(block(turning(0.7 + 0.001 * tick), still))
    for tick in range(30):  # now it rests, which makes nothing good again
        with pytest.raises(ImuFrozenError):
            board.decode(block((tick, 0, 0), still))
    board.decode(block((0, 0, 0), board_pitched(0.01)))


def test_an_orientation_that_comes_late_in_a_fast_turn_is_not_frozen(board: BusImu) -> None:
    for tick in range(100):  # a blow turns at up to 8.7 rad/s, the gyroscope's range
        board.decode(block(turning(8.7 - 0.001 * (tick % 5)), board_pitched(0.02 * (tick // 5))))


@pytest.mark.parametrize("rad_per_s", [0.017, -0.05])
def test_a_gyroscope_that_drifts_at_rest_is_not_frozen(board: BusImu, rad_per_s: float) -> None:
    for tick in range(3000):  # a minute; the manual's offset is 1 degree per second
        board.decode(block(turning(rad_per_s + 0.001 * (tick % 2)), board_pitched(0.0)))


def test_a_trunk_that_shakes_without_turning_is_not_frozen(board: BusImu) -> None:
    for tick in range(3000):
        board.decode(block(turning(1.0 if tick % 2 else -1.0), board_pitched(0.0)))


def test_every_kind_of_failure_can_be_caught_as_one() -> None:
    for kind in (ImuNotStartedError, ImuInvalidError, ImuFrozenError):
        assert issubclass(kind, ImuError)


def test_check_waits_a_quarter_second_for_the_filter_to_settle(board: BusImu, clock) -> None:
    board.check()
    assert clock.now == pytest.approx(0.25)


def test_check_waits_for_a_filter_that_starts_late(board: BusImu, wire_port, clock) -> None:
    (device,) = wire_port.wire.at(200)
    device.started = False
    wire_port.wire.filter = lambda reply: (
        setattr(device, "started", clock.now > 1.0) or reply  # type: ignore[func-returns-value]
    )
    board.check()
    assert clock.now == pytest.approx(1.27, abs=0.03)


def test_check_counts_anew_when_the_filter_stops_again(board: BusImu, wire_port, clock) -> None:
    (device,) = wire_port.wire.at(200)
    wire_port.wire.filter = lambda reply: (
        setattr(device, "started", not 0.1 < clock.now < 0.2) or reply  # type: ignore[func-returns-value]
    )
    board.check()
    assert clock.now == pytest.approx(0.46, abs=0.03)


def test_filter_that_never_starts_is_diagnosed_from_the_status(board: BusImu, wire_port) -> None:
    (device,) = wire_port.wire.at(200)
    device.started = False
    with pytest.raises(ImuNotStartedError, match=r"within 3 s; .*status 1 .*orientation filter not running"):
        board.check()


def test_check_does_not_pass_a_frozen_board(board: BusImu, wire_port) -> None:
    (device,) = wire_port.wire.at(200)
    device.refresh()
    device.frozen = True
    with pytest.raises(ImuFrozenError):
        board.check()


def test_silent_board_is_named(board: BusImu, wire_port) -> None:
    wire_port.unplug(200)
    with pytest.raises(BusTimeoutError, match="device 200 gave no good answer to the ping"):
        board.check()


def test_other_device_at_the_boards_id_is_refused(board: BusImu, wire_port) -> None:
    (device,) = wire_port.wire.at(200)
    device.poke(registers.MODEL_NUMBER, 1200)
    with pytest.raises(DeviceError, match="id 200 is model 1200, but the IMU board is 10200"):
        board.check()
