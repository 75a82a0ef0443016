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


def test_error_gain_follows_from_the_firmware_s_units() -> None:
    """4096 counts a turn are 651.9 counts a radian; 885 is full duty, and the gain is divided by 256."""
    assert pytest.approx(651.9 / (256 * 885), rel=1e-4) == servo.ERROR_GAIN
    assert pytest.approx(1.738, abs=5e-4) == 1 / (servo.ERROR_GAIN * 200)


@pytest.mark.parametrize(
    ("volts", "stall", "speed"), [(6.0, 0.781, 16.4), (7.35, 0.957, 20.1), (8.2, 1.068, 22.4)]
)
def test_motor_constants_give_published_stall_torque_and_no_load_speed(
    volts: float, stall: float, speed: float
) -> None:
    assert volts * servo.TORQUE_CONSTANT / servo.RESISTANCE == pytest.approx(stall, abs=5e-4)
    assert volts / servo.TORQUE_CONSTANT == pytest.approx(speed, abs=0.05)


def test_linearised_servo_is_the_motor_near_7_35_volts() -> None:
    back_emf = servo.TORQUE_CONSTANT**2 / servo.RESISTANCE
    assert back_emf == pytest.approx(0.04765, abs=5e-6)
    assert back_emf + servo.VISCOUS_FRICTION == pytest.approx(servo.DAMPING, abs=1e-4)
    assert pytest.approx(servo.ARMATURE, rel=0.01) == servo.M6_ARMATURE
    assert servo.GEAR_FRICTION.base == pytest.approx(servo.FRICTION, rel=0.01)


def test_a_loaded_gearbox_eats_27_percent_of_the_motor_s_torque() -> None:
    assert servo.GEAR_FRICTION.motor == pytest.approx(0.27, abs=0.005)


def test_voltages_are_those_of_two_cells() -> None:
    assert servo.FLOOR_VOLTAGE < servo.NOMINAL_VOLTAGE == 2 * 3.7 < servo.FULL_VOLTAGE == 2 * 4.2
