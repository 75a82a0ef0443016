import pytest

from hardware import servo


@pytest.mark.parametrize(
    ("counts", "unit", "value"),
    [
        (1024, servo.RADIANS_PER_COUNT, 1.5707963),  # a quarter turn
        (253, servo.RAD_PER_S_PER_COUNT, 6.067),
        (250, servo.SECONDS_PER_RETURN_DELAY_COUNT, 500e-6),  # the factory's return delay
        (25, servo.SECONDS_PER_WATCHDOG_COUNT, 0.5),
        (1750, servo.AMPERES_PER_COUNT, 1.75),
        (74, servo.VOLTS_PER_COUNT, 7.4),
    ],
)
def test_counts_in_si_units(counts: int, unit: float, value: float) -> None:
    assert counts * unit == pytest.approx(value, rel=1e-4)


def test_centre_is_half_a_turn() -> None:
    assert (servo.POSITION_CENTRE, servo.COUNTS_PER_TURN) == (2048, 4096)


@pytest.mark.parametrize(("baud", "code"), [(57_600, 1), (1_000_000, 3), (2_000_000, 4), (4_000_000, 6)])
def test_baud_register_codes(baud: int, code: int) -> None:
    assert servo.BAUD_CODES[baud] == code


def test_the_bus_runs_at_a_rate_the_servo_knows() -> None:
    assert servo.BAUD_CODES[servo.BAUD] == 3


@pytest.mark.parametrize(("fault", "trips"), [(0x20, True), (0x10, True), (0x04, True), (0x01, False)])
def test_overload_shock_and_heat_trip_the_servo_but_voltage_does_not(fault: int, trips: bool) -> None:
    assert bool(servo.SHUTDOWN_MASK & fault) is trips


@pytest.mark.parametrize(("gain", "stiffness"), [(200, 0.55), (50, 0.1375), (400, 1.1), (0, 0.0)])
def test_stiffness_is_proportional_to_the_gain(gain: int, stiffness: float) -> None:
    assert servo.stiffness(gain) == pytest.approx(stiffness)


def test_torque_constant_gives_the_torque_at_the_current_limit() -> None:
    torque = 1.75 * servo.TORQUE_CONSTANT
    assert torque == pytest.approx(0.6405, abs=5e-5)


def test_model_number_is_that_of_the_named_servo() -> None:
    assert servo.MODEL_NAMES[servo.MODEL_NUMBER] == "XL330-M288"
    assert servo.MODEL_NAMES[1030] == "XM430-W210"
