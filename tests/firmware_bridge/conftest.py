"""Wires for tests, without time and with recorded bytes; a duck behind a real port; small skill bundles."""

from __future__ import annotations

import hashlib
import json
import signal
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from firmware_bridge.emulator.bmi088 import EmulatedBmi088
from firmware_bridge.emulator.bno055 import EmulatedBno055
from firmware_bridge.emulator.bno055_uart import EmulatedBno055Uart
from firmware_bridge.emulator.devices import Device, EmulatedImuBoard, EmulatedServo
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.emulator.i2c import EmulatedI2cBus
from firmware_bridge.emulator.wire import Wire
from firmware_bridge.robot.imu import uart
from firmware_bridge.robot.imu.bmi088 import Bmi088
from firmware_bridge.robot.imu.bno055 import Bno055
from firmware_bridge.robot.imu.i2c import I2cLink
from firmware_bridge.robot.imu.polled import PolledImu
from firmware_bridge.robot.imu.sample import Mounting
from firmware_bridge.skills.bundle import Bundle, load_bundle
from firmware_bridge.wire import protocol, transport
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.port import SerialPort
from hardware import contract
from hardware.joints import MOUTH_ID, SERVO_IDS

if TYPE_CHECKING:
    import onnx


settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")


class StandingClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class WirePort:
    """Emulated devices whose replies are there at once; a read never waits, so silence costs no time."""

    def __init__(self, devices: Sequence[Device], echo: bool = False) -> None:
        for device in devices:
            device.boot_s = device.eeprom_write_s = 0.0
        self.wire = Wire(devices)
        self.echo = echo
        self.sent: list[protocol.Packet] = []
        self.waiting = bytearray()
        self._parser = protocol.PacketParser(protocol.Discarded())

    def write(self, data: bytes) -> None:
        self.waiting += data if self.echo else b""
        for packet in self._parser.feed(data):
            self.sent.append(packet)
            self.waiting += self.wire.answer(packet)

    def read(self, count: int, deadline: float) -> bytes:
        data = bytes(self.waiting)
        self.waiting.clear()
        return data

    def flush_input(self) -> bytes:
        return self.read(0, 0.0)

    def servo(self, device_id: int) -> EmulatedServo:
        (device,) = self.wire.at(device_id)
        assert isinstance(device, EmulatedServo)
        return device

    def unplug(self, device_id: int) -> None:
        self.wire.devices = [device for device in self.wire.devices if device.id != device_id]


class ScriptedPort:
    """Plays recorded replies, one for each write, and keeps what was written."""

    def __init__(self, *replies: str) -> None:
        self.replies = [bytes.fromhex(reply) for reply in replies]
        self.sent: list[bytes] = []
        self.waiting = b""

    def write(self, data: bytes) -> None:
        self.sent.append(data)
        self.waiting += self.replies.pop(0) if self.replies else b""

    def read(self, count: int, deadline: float) -> bytes:
        data, self.waiting = self.waiting, b""
        return data

    def flush_input(self) -> bytes:
        return self.read(0, 0.0)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def wire_port(clock: StandingClock) -> WirePort:
    """The duck's sixteen devices on a wire without time; their own time is `clock`."""
    servos = [EmulatedServo(device_id, clock=clock) for device_id in (*SERVO_IDS, MOUTH_ID)]
    return WirePort([*servos, EmulatedImuBoard(clock=clock)])


@pytest.fixture
def wire_bus(wire_port: WirePort) -> Bus:
    return Bus(wire_port)


@pytest.fixture
def scripted() -> type[ScriptedPort]:
    return ScriptedPort


@pytest.fixture
def make_wire_port() -> type[WirePort]:
    return WirePort


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine answer late without failing a test that is not about lateness."""
    monkeypatch.setattr(transport, "HOST_MARGIN_S", 0.05)
    monkeypatch.setattr(transport, "ACK_MARGIN_S", 0.2)


@pytest.fixture
def duck(patient: None) -> Iterator[EmulatedDuck]:
    """A duck behind a real pseudo-terminal."""
    with EmulatedDuck() as emulated:
        yield emulated


@pytest.fixture
def bus(duck: EmulatedDuck) -> Iterator[Bus]:
    """A driver on the emulated duck's real port."""
    with SerialPort(duck.port) as port:
        yield Bus(port)


class NoWaitPort(SerialPort):
    """A real port, with a BNO055 at its far end whose thread is this one; silence costs no time."""

    def __init__(self, far: EmulatedBno055Uart) -> None:
        super().__init__(far.port, uart.BAUD)
        self._line = far.line
        self._written = self._taken = 0

    def write(self, data: bytes) -> None:
        super().write(data)
        self._written += len(data)
        while self._line.heard < self._written:
            self._line.step(60.0)

    def _take(self, wait: float) -> bytes:
        data = super()._take(60.0 if self._line.sent > self._taken else 0.0)
        self._taken += len(data)
        return data


class AccelerometerAlone:
    """In place of the orientation filter: the shortest turn that lets the acceleration point up."""

    def update(self, rate: Sequence[float], acceleration: Sequence[float], period_s: float) -> list[float]:
        x, y, z = np.array(acceleration) / np.linalg.norm(acceleration)
        turn = np.array([1 + z, y, -x, 0.0])
        return (turn / np.linalg.norm(turn)).tolist()


@dataclass
class ImuRig:
    """An emulated sensor of a kind, and the driver that reads it when a test calls `imu.step`."""

    sensor: Any
    chip: Any
    imu: PolledImu
    far: Any


@pytest.fixture
def make_rig(clock: StandingClock) -> Iterator[Callable[..., ImuRig]]:
    """Makes emulated sensors with their drivers; the sensor's time is `clock` unless another is given."""
    with ExitStack() as stack:

        def make(kind: str, clock: Callable[[], float] = clock, mounting: Mounting | None = None) -> ImuRig:
            sensor: Any
            if kind == "bmi088-i2c":
                sensor = EmulatedBmi088(clock=clock)
                far: Any = EmulatedI2cBus({0x19: sensor.accelerometer, 0x68: sensor.gyroscope})
                links = I2cLink(far, 1, 0x19), I2cLink(far, 1, 0x68)
                chip: Any = Bmi088(*links, AccelerometerAlone())  # type: ignore[arg-type]
            elif kind == "bno055-i2c":
                sensor = EmulatedBno055(clock=clock)
                far = EmulatedI2cBus({0x29: sensor})
                chip = Bno055(I2cLink(far, 1, 0x29))
            else:
                sensor = EmulatedBno055(clock=clock)
                far = stack.enter_context(EmulatedBno055Uart(sensor, clock, threaded=False))
                chip = Bno055(uart.UartLink(NoWaitPort(far), far.port))
            imu = PolledImu(chip, mounting or Mounting((1.0, 0.0, 0.0, 0.0)), threaded=False)
            stack.callback(imu.close)
            return ImuRig(sensor, chip, imu, far)

        yield make


WIDTH = 55


SIN_CLOCK = 38
"""Place of sin(phase) in the observation: after gravity, rates, command, joint errors and velocities."""


LEFT_ANKLE = 4


TASK_ROWS = {"stand": (0.0, 0.0, 0.0, 0.0), "walk": (-0.1, 0.3, -0.5, 0.5)}
"""Lowest and highest vx, lowest and highest yaw rate of the two tasks of the test bundle."""


def policy_model(
    nodes: list[onnx.NodeProto] | None = None,
    *,
    width: int = WIDTH,
    opset: int = 17,
    ir_version: int = 8,
    rows: int = 2,
) -> onnx.ModelProto:
    """Return a policy: left ankle 0.5 sin(phase), plus 0.25 at the left hip yaw for task 1, else 0."""
    from onnx import TensorProto, helper, numpy_helper  # takes its time, and most tests need none of it

    weight = np.zeros((width, 14), np.float32)
    weight[SIN_CLOCK, LEFT_ANKLE] = 0.5
    table = np.zeros((rows, 14), np.float32)
    table[1:, 0] = 0.25
    standard = [
        helper.make_node("MatMul", ["observation", "weight"], ["moved"]),
        helper.make_node("Gather", ["table", "task_id"], ["row"]),
        helper.make_node("Squeeze", ["row", "axis"], ["flat"]),
        helper.make_node("Add", ["moved", "flat"], ["action"]),
    ]
    graph = helper.make_graph(
        standard if nodes is None else nodes,
        "policy",
        [
            helper.make_tensor_value_info("observation", TensorProto.FLOAT, [1, width]),
            helper.make_tensor_value_info("task_id", TensorProto.INT64, [1, 1]),
        ],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, 14])],
        [
            numpy_helper.from_array(weight, "weight"),
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([1], np.int64), "axis"),
        ],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version, producer_name="test"
    )


def write_archive(path: Path, leaves: Mapping[str, np.ndarray | list[str]]) -> None:
    """Write a flat archive with the bytes that the trainer's library writes."""
    names = {"float32": "torch.float32", "int64": "torch.int64"}
    meta: dict[str, Any] = {"shape": [], "device": "cpu", "_type": "<class 'TensorDict'>"}
    with zipfile.ZipFile(path, "w") as file:
        for key, leaf in leaves.items():
            if isinstance(leaf, list):
                meta[key] = {"type": "NonTensorStack"}
                file.writestr(f"{key}/meta.json", json.dumps({"stack_dim": 0, "data": leaf}))
            else:
                meta[key] = {"shape": list(leaf.shape), "dtype": names[leaf.dtype.name], "is_nested": False}
                file.writestr(f"{key}.memmap", leaf.tobytes())
        file.writestr("meta.json", json.dumps(meta))


def task_leaves() -> dict[str, np.ndarray | list[str]]:
    """Return the columns of the test bundle's two tasks."""
    rows = np.array(list(TASK_ROWS.values()), np.float32)
    return {
        "command_low": np.stack([rows[:, 0], np.zeros(2, np.float32)], axis=1),
        "command_high": np.stack([rows[:, 1], np.zeros(2, np.float32)], axis=1),
        "yaw_rate_interval": np.ascontiguousarray(rows[:, 2:]),
        "gait_frequency_hz": np.array([2.0, 1.5], np.float32),
        "gait_frequency_per_mps": np.array([0.0, 1.0], np.float32),
        "name": list(TASK_ROWS),
    }


@dataclass
class BundleDraft:
    """A bundle before it is written; tests spoil one part of it."""

    model: bytes = field(default_factory=lambda: policy_model().SerializeToString())
    tasks: dict[str, np.ndarray | list[str]] = field(default_factory=task_leaves)
    description: dict[str, Any] = field(default_factory=lambda: contract.describe("sensor", 0.8))
    width: int = WIDTH
    versions: tuple[int, int] = (8, 17)
    manifest: dict[str, Any] = field(default_factory=dict)
    """Fields that replace those of the manifest."""
    spoil: Callable[[dict[str, Any]], None] = lambda manifest: None
    """Last change of the manifest."""

    def write(self, folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        (folder / "policy.onnx").write_bytes(self.model)
        write_archive(folder / "tasks.tdz", self.tasks)
        manifest = {
            "schema": 1,
            "kind": "microduck-skill-bundle",
            "contract": self.description,
            "contract_digest": contract.digest(self.description),
            "policy": {
                "file": "policy.onnx",
                "sha256": _sha256(folder / "policy.onnx"),
                "ir_version": self.versions[0],
                "opset": self.versions[1],
                "inputs": {"observation": [1, self.width], "task_id": [1, 1]},
                "output": {"action": [1, 14]},
            },
            "tasks": {"file": "tasks.tdz", "sha256": _sha256(folder / "tasks.tdz")},
            "skills": [_skill("walk", 1, 1.5, 1.0), _skill("stand", 0, 2.0, 0.0)],
            "training": {},
            "evaluation": {},
            **self.manifest,
        }
        self.spoil(manifest)
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return folder


def _skill(name: str, task_id: int, base: float, gain: float) -> dict[str, Any]:
    low, high, yaw_low, yaw_high = TASK_ROWS[name]
    return {
        "name": name,
        "task_id": task_id,
        "command_low": [low, 0.0, yaw_low],
        "command_high": [high, 0.0, yaw_high],
        "gait_frequency_hz": base,
        "gait_frequency_per_mps": gain,
    }


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def draft() -> BundleDraft:
    """A bundle that is valid until a test spoils it."""
    return BundleDraft()


@pytest.fixture(scope="session")
def make_model() -> Callable[..., onnx.ModelProto]:
    """The maker of test policies."""
    return policy_model


@pytest.fixture(scope="session")
def bundle_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid bundle on disk, not to be changed."""
    return BundleDraft().write(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="session")
def bundle(bundle_folder: Path) -> Bundle:
    """The same bundle, loaded."""
    return load_bundle(bundle_folder)


@pytest.fixture(autouse=True)
def hangup_is_not_ignored() -> Iterator[None]:
    """Let SIGHUP reach the tests and what they start, even where the whole run ignores it, as under nohup."""
    usual = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, usual)
