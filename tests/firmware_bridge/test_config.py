"""One robot's settings."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from firmware_bridge import config
from firmware_bridge.cli import main
from firmware_bridge.config import Config, default_path, find_config, load_config, write_default
from firmware_bridge.toml_sections import attribute_texts, parse_sections, render
from hardware.calibration import Calibration, save_calibration
from hardware.errors import ConfigError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without settings."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(config.CONFIG_VARIABLE, raising=False)
    return tmp_path


def parse(text: str) -> Config:
    return parse_sections(text.encode(), "duck.toml", Config)


def test_the_written_default_parses_to_the_defaults(home: Path) -> None:
    write_default(home / "new" / "duck.toml", overwrite=False)
    assert load_config(home / "new" / "duck.toml") == Config()


def test_the_written_default_shows_every_key_with_its_meaning() -> None:
    text = render(Config())
    for section in fields(Config):
        kind = type(getattr(Config(), section.name))
        assert f"\n[{section.name}]\n" in text
        meanings = attribute_texts(kind)
        for key in fields(kind):
            assert len(meanings[key.name]) > 8
            assert f"\n{key.name} = " in text or f"\n# {key.name} is not set." in text


def test_the_defaults_are_those_of_the_duck() -> None:
    settings = Config()
    assert (settings.bus.port, settings.bus.baud) == ("auto", 1_000_000)
    assert settings.gains.p_gain is None and settings.calibration.file is None
    assert not settings.battery.rail_is_pack and not settings.loop.realtime
    assert (settings.battery.empty_v, settings.battery.full_v) == (6.6, 8.2)
    assert settings.limits.deadman_s == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[bus]\nspeed = 1", "line 2: unknown key 'speed' in [bus]; valid keys are port, baud, wait_s"),
        ("[servos]", "line 1: unknown section [servos]; valid ones are bus, gains, limits, battery,"),
        (
            "[bus]\nbaud = 123",
            "line 2: [bus] baud is 123, which the servos cannot do; choose one of 9600, 57600,",
        ),
        ("[bus]\nbaud = 1e6", "line 2: [bus] baud = 1000000.0; it must be a whole number"),
        ('[bus]\nport = ""', "line 2: [bus] port is ''; name a device"),
        ('[bus]\nport = "a\\u0000b"', "line 2: [bus] port is 'a\\x00b'; name a device"),
        ("[bus]\nwait_s = -1", "line 2: [bus] wait_s is -1 s; it must be in [0, 86400]"),
        ('[imu]\nkind = "bno"', 'line 2: [imu] kind = "bno"; it must be one of "bus", "bno055-uart", '),
        ('[imu]\nkind = "bno055-uart"', "line 2: [imu] kind bno055-uart needs its port; name one, such as"),
        (
            '[imu]\nport = "/dev/ttyS0"',
            "line 2: [imu] port is '/dev/ttyS0', but an IMU of kind bus has none; leave it out",
        ),
        (
            '[imu]\nkind = "bno055-i2c"\ngyro_address = 0x68',
            "line 3: [imu] gyro_address is 104, but an IMU of kind bno055-i2c has none",
        ),
        (
            '[imu]\nkind = "bno055-uart"\nport = "\\u0000"',
            "line 3: [imu] port is '\\x00'; name a device such as",
        ),
        (
            '[imu]\nkind = "bmi088-i2c"\naddress = 0x80',
            "line 3: [imu] address is 0x80; the chip's is 0x18 or 0x19",
        ),
        (
            '[imu]\nkind = "bmi088-i2c"\ngyro_address = 0x19',  # where the accelerometer is
            "line 3: [imu] gyro_address is 0x19; the chip's is 0x68 or 0x69",
        ),
        (
            '[imu]\nkind = "bno055-i2c"\naddress = 0x68',
            "line 3: [imu] address is 0x68; the chip's is 0x28 or 0x29",
        ),
        (
            '[bus]\nport = "/dev/ttyS0"\n[imu]\nkind = "bno055-uart"\nport = "/dev/../dev/ttyS0"',
            "line 5: [imu] port is '/dev/../dev/ttyS0', where [bus] port '/dev/ttyS0' has the servos;",
        ),
        ('[imu]\nkind = "bmi088-i2c"\ni2c_bus = -1', "line 3: [imu] i2c_bus is -1; it must be 0 or more"),
        ("[gains]\np_gain = 0", "line 2: [gains] p_gain is 0; it must be in [1, 16383]"),
        ("[gains]\np_gain = 20000", "line 2: [gains] p_gain is 20000"),
        (
            "\n\n[limits]\ntemperature_limit = 90",
            "line 4: [limits] temperature_limit is 90; it must be in [30, 70]",
        ),
        ("[limits]\ndeadman_s = 0.5\nfall_s = nan", "line 3: [limits] fall_s = nan; it must be a number"),
        ("[limits]\ntemperature_limit = 50", "line 2: [limits] temperature_warn is 60; it must be below"),
        (
            "[battery]\nempty_v = 8.3",
            "line 2: [battery] empty_v is 8.3; it must be below full_v, which is 8.2",
        ),
        ('[gamepad]\nvx = "ABS_Q"', "line 2: [gamepad] vx is 'ABS_Q'; choose an axis of"),
        (
            '[gamepad]\nstart = "BTN_TL"\nlimp = "BTN_TL"',
            "line 3: [gamepad] limp is BTN_TL",
        ),
        ("[calibration]\nfile = 3", "line 2: [calibration] file = 3; it must be a path in quotes"),
        (
            '[calibration]\nfile = ""',
            'line 2: [calibration] file = ""; it must be a path in quotes, not empty',
        ),
        (
            '[calibration]\nfile = "a\\u0000.toml"',
            'line 2: [calibration] file = "a\\u0000.toml"; it must be a path in quotes, not empty',
        ),
        (
            '[calibration]\nfile = "~no such user/a.toml"',
            "line 2: [calibration] file is '~no such user/a.toml', and there is no such home folder",
        ),
        ('[loop]\nrealtime = "yes"', 'line 2: [loop] realtime = "yes"; it must be true or false'),
        ("[bus]\nport = 'a'\nport = 'b'", "line 3: port is given a second time; keep one of the two"),
    ],
)
def test_a_bad_setting_is_refused_with_its_line_its_value_and_the_valid_ones(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text)
    assert str(refused.value).startswith(f"duck.toml, {message}")


def test_a_calibration_file_is_found_beside_the_file_that_names_it(home: Path) -> None:
    path = home / "duck.toml"
    path.write_text('[calibration]\nfile = "ann.toml"\n')
    assert load_config(path).calibration.file == home / "ann.toml"
    path.write_text('[calibration]\nfile = "/etc/ann.toml"\n')
    assert load_config(path).calibration.file == Path("/etc/ann.toml")
    path.write_text('[calibration]\nfile = "~/ann.toml"\n')
    assert load_config(path).calibration.file == home / "ann.toml"


def test_a_link_to_the_servos_port_is_no_port_of_the_imus_own(home: Path) -> None:
    (home / "serial0").symlink_to("/dev/ttyAMA0")
    text = '[bus]\nport = "{}"\n[imu]\nkind = "bno055-uart"\nport = "{}"\n'
    with pytest.raises(ConfigError, match=r"line 5: \[imu\] port is .*serial0', where \[bus\] port"):
        parse(text.format("/dev/ttyAMA0", home / "serial0"))
    assert parse(text.format("/dev/ttyAMA0", "/dev/ttyS0")).imu.port == "/dev/ttyS0"
    assert parse(text.format("auto", home / "serial0")).bus.port == "auto"


@pytest.mark.parametrize("command", ["calibrate", "doctor", "bench", "run"])
def test_a_port_that_is_typed_is_as_strictly_read_as_one_in_a_file(
    command: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / "duck.toml"
    path.write_text('[imu]\nkind = "bno055-uart"\nport = "/dev/ttyS0"\n')
    assert main([command, "--config", str(path), "--port", ""]) == 1
    assert "port is ''; name a device" in capsys.readouterr().err
    assert main([command, "--config", str(path), "--port", "/dev/ttyS0"]) == 1
    assert (
        "[imu] port is '/dev/ttyS0', where [bus] port '/dev/ttyS0' has the servos" in capsys.readouterr().err
    )


def test_the_file_that_is_named_counts_before_the_environments_and_that_before_homes(home: Path) -> None:
    usual = home / ".config" / "microduck" / "duck.toml"
    assert find_config(None, {}) is None and load_config(None) == Config()
    write_default(usual, overwrite=False)
    assert find_config(None, {}) == usual
    environment = {"MICRODUCK_CONFIG": "other.toml"}
    assert find_config(None, environment) == Path("other.toml")  # though there is none: reading it says so
    assert find_config(Path("mine.toml"), environment) == Path("mine.toml")


def test_a_user_without_a_home_is_told_what_to_do() -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    with pytest.raises(ConfigError, match=r"name a file in \$MICRODUCK_CONFIG"):
        default_path({}, homeless)


def test_init_writes_a_file_once_and_replaces_it_only_by_force(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = home / ".config" / "microduck" / "duck.toml"
    assert main(["config", "init"]) == 0
    assert capsys.readouterr().out == f"wrote {usual}\n"
    usual.write_text("[bus]\nport = '/dev/mine'\n")
    assert main(["config", "init"]) == 1
    assert "exists already" in capsys.readouterr().err and "mine" in usual.read_text()
    assert main(["config", "init", "--force"]) == 0
    assert load_config(usual) == Config()


def test_init_says_why_a_file_cannot_be_written(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "file").write_text("")
    assert main(["config", "init", str(home / "file" / "duck.toml")]) == 1
    assert "cannot write" in capsys.readouterr().err
    assert main(["config", "init", str(home), "--force"]) == 1
    assert "is no file; name one" in capsys.readouterr().err
    assert list(home.iterdir()) == [home / "file"]


def test_check_names_the_file_and_what_is_wrong(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / "duck.toml"
    path.write_text("[loop]\nrealtime = true\n")
    assert main(["config", "check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path} is valid\n"
    path.write_text("[loop]\nrealtime = 1\n")
    assert main(["config", "check", str(path)]) == 1
    assert capsys.readouterr().err == f"duck: {path}, line 2: [loop] realtime = 1; it must be true or false\n"
    assert main(["config", "check", str(home / "none.toml")]) == 1
    assert "none.toml is not a file" in capsys.readouterr().err


@pytest.mark.usefixtures("home")
def test_check_of_no_file_says_that_the_defaults_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check"]) == 0
    assert "the defaults hold; `duck config init`" in capsys.readouterr().out


def test_check_reads_the_calibration_that_the_file_names(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / "duck.toml"
    path.write_text('[calibration]\nfile = "c.toml"\n')
    assert main(["config", "check", str(path)]) == 1
    assert "c.toml is not a file" in capsys.readouterr().err
    save_calibration(Calibration(), home / "c.toml")
    assert main(["config", "check", str(path)]) == 0


def test_show_prints_what_is_in_force_and_where_it_comes_from(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "show"]) == 0
    assert capsys.readouterr().out.startswith(
        "# There is no file of settings; these are the defaults.\n[bus]\n"
    )
    path = home / "mine.toml"
    path.write_text("[limits]\ndeadman_s = 0.25\n")
    assert main(["config", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"# from {path}\n") and "\ndeadman_s = 0.25\n" in shown
    assert parse(shown) == load_config(path)


def test_a_file_that_only_the_environment_names_and_that_is_not_there_yet_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "duck.toml"
    monkeypatch.setenv("MICRODUCK_CONFIG", str(path))
    with pytest.raises(ConfigError, match=r"which \$MICRODUCK_CONFIG names; `duck config init` makes it"):
        load_config(find_config(None))
