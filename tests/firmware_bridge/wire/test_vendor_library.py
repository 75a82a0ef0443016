"""The emulated duck driven by someone else's code: the vendor's library `dynamixel-sdk`, over a real port."""

from __future__ import annotations

import time
from collections.abc import Iterator

import dynamixel_sdk as sdk
import numpy as np
import pytest

from firmware_bridge.emulator.devices import EmulatedServo
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.emulator.faults import Fault, FaultKind, Schedule
from firmware_bridge.wire import registers
from hardware.joints import MOUTH_ID, SERVO_IDS

COUNT = 2 * np.pi / 4096


@pytest.fixture
def vendor(duck: EmulatedDuck, monkeypatch: pytest.MonkeyPatch) -> Iterator[sdk.PortHandler]:
    monkeypatch.setattr("dynamixel_sdk.port_handler.LATENCY_TIMER", 1000)
    port = sdk.PortHandler(duck.port)
    port.setBaudRate(1_000_000)
    yield port
    port.closePort()


@pytest.fixture
def handler() -> sdk.Protocol2PacketHandler:
    return sdk.PacketHandler(2.0)


def test_it_pings_reads_and_writes(duck: EmulatedDuck, vendor: sdk.PortHandler, handler) -> None:
    assert handler.ping(vendor, 20) == (1200, sdk.COMM_SUCCESS, 0)
    assert handler.write2ByteTxRx(vendor, 20, 84, 321) == (sdk.COMM_SUCCESS, 0)
    assert handler.read2ByteTxRx(vendor, 20, 84) == (321, sdk.COMM_SUCCESS, 0)
    assert duck.p_gains[0] == 321


def test_it_finds_every_device_by_a_ping_to_all(vendor: sdk.PortHandler, handler) -> None:
    found, result = handler.broadcastPing(vendor)
    assert result == sdk.COMM_SUCCESS
    assert found == {**{device: [1200, 52] for device in (*SERVO_IDS, MOUTH_ID)}, 200: [10200, 2]}


def test_it_restarts_a_servo_that_comes_back_limp(
    duck: EmulatedDuck, vendor: sdk.PortHandler, handler
) -> None:
    assert handler.write2ByteTxRx(vendor, 20, 84, 321) == (sdk.COMM_SUCCESS, 0)
    assert handler.write1ByteTxRx(vendor, 20, 64, 1) == (sdk.COMM_SUCCESS, 0)
    assert duck.torque[0]
    assert handler.reboot(vendor, 20) == (sdk.COMM_SUCCESS, 0)
    assert not duck.torque[0]
    time.sleep(0.35)
    assert handler.read2ByteTxRx(vendor, 20, 84) == (400, sdk.COMM_SUCCESS, 0)
    assert handler.read1ByteTxRx(vendor, 20, 64) == (0, sdk.COMM_SUCCESS, 0)


def test_it_understands_stuffed_and_refused_replies(
    duck: EmulatedDuck, vendor: sdk.PortHandler, handler
) -> None:
    duck.servo(20).poke(registers.PRESENT_POSITION, 0x00FDFFFF)
    assert handler.read4ByteTxRx(vendor, 20, 132) == (0x00FDFFFF, sdk.COMM_SUCCESS, 0)
    assert handler.write4ByteTxRx(vendor, 20, 132, 0) == (sdk.COMM_SUCCESS, sdk.ERRNUM_ACCESS)
    assert handler.write4ByteTxRx(vendor, 20, 116, 5000) == (sdk.COMM_SUCCESS, sdk.ERRNUM_DATA_LIMIT)
    assert handler.write2ByteTxRx(vendor, 20, 116, 2048) == (sdk.COMM_SUCCESS, sdk.ERRNUM_DATA_LENGTH)
    assert handler.write2ByteTxRx(vendor, 20, 84, 20_000) == (sdk.COMM_SUCCESS, sdk.ERRNUM_DATA_RANGE)


def test_it_reads_the_cause_of_an_alert(duck: EmulatedDuck, vendor: sdk.PortHandler, handler) -> None:
    duck.inject(Schedule((Fault(FaultKind.ALERT, device=20, amount=0x24),)))
    assert handler.read1ByteTxRx(vendor, 20, 70) == (0x24, sdk.COMM_SUCCESS, sdk.ERRBIT_ALERT)


@pytest.mark.parametrize("fast", [False, True])
def test_it_reads_all_servos_at_once(
    duck: EmulatedDuck, vendor: sdk.PortHandler, handler, fast: bool
) -> None:
    duck.set_state(np.arange(14) * 0.1)
    group = sdk.GroupSyncRead(vendor, handler, 132, 4)
    for device in SERVO_IDS:
        group.addParam(device)
    assert (group.fastSyncRead() if fast else group.txRxPacket()) == sdk.COMM_SUCCESS
    counts = [group.getData(device, 132, 4) for device in SERVO_IDS]
    assert counts[:3] == [2048, 2113, 2178]
    assert counts[13] == 2895


def test_it_writes_all_servos_at_once(duck: EmulatedDuck, vendor: sdk.PortHandler, handler) -> None:
    group = sdk.GroupSyncWrite(vendor, handler, 116, 4)
    for device in SERVO_IDS:
        group.addParam(device, (2048 + device).to_bytes(4, "little"))
    assert group.txPacket() == sdk.COMM_SUCCESS
    assert handler.ping(vendor, 20)[1] == sdk.COMM_SUCCESS  # so the write was heard before
    assert np.allclose(duck.goals, np.array(SERVO_IDS) * COUNT)


def test_it_makes_a_factory_servo_part_of_the_duck(
    duck: EmulatedDuck, vendor: sdk.PortHandler, handler
) -> None:
    newcomer = EmulatedServo(1, factory=True)
    duck.unplug(23)
    duck.plug(newcomer)
    assert vendor.setBaudRate(57_600)
    assert handler.ping(vendor, 1) == (1200, sdk.COMM_SUCCESS, 0)
    for device, address, value in ((1, 7, 23), (23, 9, 0), (23, 8, 3)):
        assert handler.write1ByteTxRx(vendor, device, address, value) == (sdk.COMM_SUCCESS, 0)
        time.sleep(0.03)  # while the servo writes its EEPROM it hears nothing
    assert vendor.setBaudRate(1_000_000)
    assert handler.ping(vendor, 23) == (1200, sdk.COMM_SUCCESS, 0)
    assert newcomer.eeprom_writes == 3
