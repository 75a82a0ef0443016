from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.cli import main
from firmware_bridge.wire import registers
from hardware.errors import PortError


def doctor(*arguments: str) -> int:
    return main(["doctor", "--port", "desk", *arguments])


def test_a_healthy_duck_gets_a_table_and_exit_code_0(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "port desk" and lines[-1] == "All well."
    row = next(line for line in lines if line.startswith("left_knee (id 23)  "))
    assert row.split()[3:] == ["XL330-M288", "(1200)", "52", "7.0", "30", "off"]
    assert len({line.index("(1200)") for line in lines if "(1200)" in line}) == 1


def test_deviations_are_shown_with_their_cost_and_fixed_on_a_yes(
    served: Any, capsys: pytest.CaptureFixture[str], answer: Any
) -> None:
    for device in (20, 21, 22):
        served.servo(device).poke(registers.RETURN_DELAY, 250)
    answer("y\n")
    assert doctor("--fix") == 0
    shown = capsys.readouterr()
    row = next(line for line in shown.out.splitlines() if line.startswith("return delay time"))
    assert " ".join(row.split()[3:]) == "500 us 0 us 1.50 3 devices: ids 20, 21, 22"
    assert "3 deviations, costing 1.50 ms of every 20 ms tick. `duck doctor --fix` puts 3 right." in shown.out
    assert shown.out.endswith("All well.\n") and "[y/N]" in shown.err
    assert served.eeprom_writes == 3


@pytest.mark.parametrize("said", ["n\n", "\n", ""])
def test_anything_but_a_yes_writes_nothing_and_leaves_torque_on(served: Any, answer: Any, said: str) -> None:
    served.servo(20).poke(registers.RETURN_DELAY, 250)
    served.servo(20).poke(registers.TORQUE_ENABLE, 1)
    answer(said)
    assert doctor("--fix") == 1
    assert served.orders == []


def test_a_second_fix_asks_nothing_writes_nothing_and_leaves_torque_on(
    served: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    served.servo(20).poke(registers.PWM_SLOPE, 140)
    assert doctor("--fix", "--yes") == 0 and served.eeprom_writes == 1
    served.servo(20).poke(registers.TORQUE_ENABLE, 1)
    served.sent.clear()
    capsys.readouterr()
    assert doctor("--fix") == 0
    assert served.orders == [] and capsys.readouterr().err == ""


def test_a_fix_that_fails_is_told_and_stays_a_deviation(
    served: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served.servo(23).poke(registers.PWM_SLOPE, 140)
    monkeypatch.setattr(served.servo(23), "write", lambda address, data: 0)
    assert doctor("--fix", "--yes") == 1
    assert "left_knee (id 23): set pwm slope to 255: failed: " in capsys.readouterr().out


def test_json_holds_the_devices_the_deviations_and_what_was_fixed(
    served: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    served.servo(23).poke(registers.SHUTDOWN, 53)
    assert doctor("--json") == 1
    report = json.loads(capsys.readouterr().out)
    (deviation,) = report["deviations"]
    assert (deviation["where"], deviation["found"], deviation["expected"]) == (
        "left_knee (id 23)",
        "53",
        "52",
    )
    assert (report["exit_code"], report["baud"], len(report["devices"])) == (1, 1_000_000, 16)
    assert doctor("--json", "--fix", "--yes") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["deviations"] == [] and report["verdict"] == "All well."
    assert report["fixed"] == [{"done": True, "text": "left_knee (id 23): set shutdown to 52"}]


def test_json_shows_what_answers_without_being_one_right_servo(
    served: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = served.new_servo(23)
    served.plug(twin)
    twin.poke(registers.PRESENT_POSITION, 100)
    monkeypatch.setattr(served.servo(24), "read", lambda at, length: (0 if at == 120 else 7, bytes(length)))
    assert doctor("--json") == 2
    devices = {row["id"]: row["answers"] for row in json.loads(capsys.readouterr().out)["devices"]}
    assert (devices[20], devices[23], devices[24]) == ("alone", "doubled", "unreliable")
    assert doctor() == 2  # the table takes them too


def test_a_duck_that_lacks_a_joint_cannot_run(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    served.unplug(23)
    served.refused = {4_000_000}
    assert doctor() == 2
    shown = capsys.readouterr().out
    assert "The duck cannot run: 1 deviation." in shown and "this port cannot do 4000000 baud" in shown


def test_a_bus_without_power_gets_one_deviation(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    served.wire.devices.clear()
    assert doctor() == 2
    assert "switch the servos' power on" in capsys.readouterr().out


def test_the_settings_name_the_speed_and_the_limits(
    served: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "duck.toml"
    file.write_text('[bus]\nport = "desk"\nbaud = 2000000\n[limits]\ntemperature_warn = 31.0\n')
    for device in served.wire.devices:
        device.poke(registers.BAUD_RATE, 4)
    served.servo(20).poke(registers.PRESENT_TEMPERATURE, 31)
    assert main(["doctor", "--config", str(file)]) == 1
    assert "below 31 deg C" in capsys.readouterr().out and served.opened == [2_000_000]


def test_a_port_that_does_not_work_is_a_finding_and_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--port", str(tmp_path / "ttyUSB7"), "--json"]) == 2
    (deviation,) = json.loads(capsys.readouterr().out)["deviations"]
    assert deviation["what"] == "serial port" and "does not exist" in deviation["remedy"]


def test_a_port_that_fails_in_the_middle_of_a_fix_is_a_finding_too(
    served: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served.servo(23).poke(registers.PWM_SLOPE, 140)

    def unplugged(address: int, data: bytes) -> int:
        raise PortError("desk stopped working; check the cable")

    monkeypatch.setattr(served.servo(23), "write", unplugged)
    assert doctor("--fix", "--yes") == 2
    assert "desk stopped working" in capsys.readouterr().out


def test_no_port_with_a_duck_is_a_finding_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firmware_bridge.wire.port.candidates", lambda: [])
    assert main(["doctor", "--port", "auto"]) == 2
    assert "connect the adapter" in capsys.readouterr().out
