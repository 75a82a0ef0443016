"""The doctor's commands on a real serial port, whose speed the emulated devices obey."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import firmware_bridge.wire.bus
from firmware_bridge.cli import main
from firmware_bridge.emulator.devices import EmulatedServo
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.wire import registers


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(firmware_bridge.wire.bus, "SCAN_WINDOW_S", 0.2)
    monkeypatch.delenv("MICRODUCK_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_a_servo_at_the_wrong_speed_with_factory_settings_is_put_right(
    duck: EmulatedDuck, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = EmulatedServo(23, factory=True)
    duck.unplug(23)
    duck.plug(lost)
    assert main(["doctor", "--port", duck.port, "--fix", "--yes"]) == 0
    assert lost.baud == 1_000_000
    assert capsys.readouterr().out.endswith("All well.\n")


def test_a_new_servo_is_adopted(duck: EmulatedDuck) -> None:
    new = EmulatedServo(1, factory=True)
    duck.unplug(23)
    duck.plug(new)
    assert main(["setup", "--port", duck.port, "--yes"]) == 0
    assert (new.id, new.baud, new.peek(registers.SHUTDOWN)) == (23, 1_000_000, 52)


def test_a_bench_measures_a_duck_and_writes_nothing_but_goals(
    duck: EmulatedDuck, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses: set[int] = set()
    write = EmulatedServo.write

    def noting(servo: EmulatedServo, address: int, data: bytes) -> int:
        addresses.add(address)
        return write(servo, address, data)

    monkeypatch.setattr(EmulatedServo, "write", noting)
    code = main(["bench", "--port", duck.port, "--seconds", "0.5", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert set(result["stages_ms"]) == {"late", "read", "policy", "write", "record", "work"}
    assert code == (0 if result["fits"] else 1) and 1 <= result["ticks"] <= 25
    assert addresses == {registers.GOAL_POSITION.address} and not duck.torque.any()


def test_a_bench_refuses_a_duck_that_holds_itself_up(
    duck: EmulatedDuck, capsys: pytest.CaptureFixture[str]
) -> None:
    duck.servo(20).poke(registers.TORQUE_ENABLE, 1)
    assert main(["bench", "--port", duck.port, "--seconds", "0.1"]) == 1
    assert "torque is on at left_hip_yaw" in capsys.readouterr().err and duck.servo(20).torque


def test_a_bench_of_the_machine_alone_needs_no_port(capsys: pytest.CaptureFixture[str]) -> None:
    main(["bench", "--no-bus", "--seconds", "0.2"])
    shown = capsys.readouterr().out
    assert "inference" in shown and "bus read" not in shown and "20 ms" in shown
