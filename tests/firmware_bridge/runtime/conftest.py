"""Makers of small bundles, a body without a wire and a clock without waiting, for the runtime's tests."""

from __future__ import annotations

import hashlib
import json
import signal
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import firmware_bridge.drive.loop
from firmware_bridge.commands.request import Event, Request
from firmware_bridge.drive.clock import Ticker
from firmware_bridge.drive.loop import run
from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.options import Hooks, LoopOptions
from firmware_bridge.drive.summary import Summary, Tick
from firmware_bridge.robot.body import BodySample, Health
from firmware_bridge.skills.bundle import Bundle, load_bundle
from hardware import contract
from hardware.errors import BusTimeoutError
from hardware.joints import STAND

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


class FakeTime:
    """Time that passes only when someone sleeps or works."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += max(seconds, 1e-9)  # a real sleep takes some time, however short it was to be

    def ticker(self) -> Ticker:
        return Ticker(now=self.now, sleep=self.sleep)


class FakeBody:
    """A body whose joints are where they were told to be, and which notes what it is told.

    `failing(read)` says whether the read of that number times out.
    """

    def __init__(self) -> None:
        self.position = STAND + 0.1
        self.current = np.zeros(14)
        self.angular_velocity = np.zeros(3)
        self.gravity = np.array([0.0, 0.0, -1.0])
        self.alerts: tuple[str, ...] = ()
        self.health: Health | None = None
        self.torque = False
        self.gain = 0
        self.reads = 0
        self.deadlines: list[float] = []
        self.writes: list[np.ndarray] = []
        self.calls: list[str] = []
        self.failing: Callable[[int], bool] = lambda read: False
        self.on_read: Callable[[int], None] = lambda read: None

    def enable(self, p_gain: int) -> None:
        self.calls.append("enable")
        self.torque, self.gain = True, p_gain

    def read(self, deadline: float) -> BodySample:
        self.reads += 1
        self.deadlines.append(deadline)
        self.on_read(self.reads)
        if self.failing(self.reads):
            raise BusTimeoutError("ids 20 did not answer")
        return BodySample(
            time_s=0.0,
            position=self.position,
            velocity=np.zeros(14),
            current=self.current,
            angular_velocity=self.angular_velocity,
            gravity=self.gravity,
            alerts=self.alerts,
            health=self.health,
        )

    def write(self, targets: np.ndarray) -> None:
        assert self.torque, "a target for a limp duck"
        self.writes.append(targets.copy())
        self.position = targets.copy()

    def limp(self) -> None:
        self.calls.append("limp")
        self.torque = False


def healthy(**changes: Any) -> Health:
    """Return what servos report that are well, but for the changes."""
    usual = {
        "time_s": 0.0,
        "voltage": np.full(14, 7.6),
        "temperature": np.full(14, 35.0),
        "torque": np.ones(14, bool),
        "faults": {},
        "watchdog_tripped": False,
        "rebooted": (),
    }
    return Health(**{**usual, **changes})


@pytest.fixture
def draft() -> BundleDraft:
    """A bundle that is valid until a test spoils it."""
    return BundleDraft()


@pytest.fixture(scope="session")
def make_model() -> Callable[..., onnx.ModelProto]:
    """The maker of test policies."""
    return policy_model


@pytest.fixture(scope="session")
def archive_writer() -> Callable[[Path, Mapping[str, np.ndarray | list[str]]], None]:
    """The writer of test archives."""
    return write_archive


@pytest.fixture(scope="session")
def bundle_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid bundle on disk, not to be changed."""
    return BundleDraft().write(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="session")
def bundle(bundle_folder: Path) -> Bundle:
    """The same bundle, loaded."""
    return load_bundle(bundle_folder)


@pytest.fixture
def body() -> FakeBody:
    """A body without a wire."""
    return FakeBody()


class FakeSource:
    """Gives `request` at every tick; events are handed out once, each at the tick with its number."""

    def __init__(self, interactive: bool = False) -> None:
        self.refused = 0
        self.interactive = interactive
        self.request = Request(None, np.zeros(3), np.zeros(4), 0.0, None)
        self.events: dict[int, Event] = {}
        self.ticks = 0

    def latest(self) -> Request:
        self.ticks += 1
        return self.request._replace(event=self.events.pop(self.ticks - 1, None))

    def ask(self, vx: float = 0.0, yaw: float = 0.0, **changes: Any) -> None:
        """Ask for a command from now on."""
        self.request = self.request._replace(command=np.array([vx, 0.0, yaw]), **changes)

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass
class Drive:
    """Drives the test bundle on a fake body in fake time, and keeps what was seen."""

    body: FakeBody
    bundle: Bundle
    time: FakeTime
    source: FakeSource = field(default_factory=FakeSource)
    options: LoopOptions = field(default_factory=lambda: LoopOptions(skill="stand", seconds=1.0))
    stop: Callable[[], str | None] = lambda: None
    hurry: Callable[[], bool] = lambda: False
    on_tick: Callable[[Tick], None] = lambda tick: None
    ticks: list[Tick] = field(default_factory=list)
    modes: list[Mode] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    """Number of the tick, from 0, of each change of mode."""
    reasons: list[str] = field(default_factory=list)
    news: list[str] = field(default_factory=list)

    def run(self, **options: Any) -> Summary:
        hooks = Hooks(
            stop=self.stop,
            hurry=self.hurry,
            on_mode=self._on_mode,
            on_news=self.news.append,
            on_tick=self._on_tick,
            ticker=self.time.ticker(),
        )
        return run(self.body, self.bundle, self.source, replace(self.options, **options), hooks)

    def at(self, read: int, change: Callable[[], None]) -> None:
        """Let something happen just before the read of that number, the first being 1."""
        before = self.body.on_read

        def on_read(number: int) -> None:
            before(number)
            if number == read:
                change()

        self.body.on_read = on_read

    def _on_mode(self, mode: Mode, reason: str) -> None:
        self.modes.append(mode)
        self.changed.append(len(self.ticks))
        self.reasons.append(reason)

    def _on_tick(self, tick: Tick) -> None:
        self.ticks.append(tick)
        self.on_tick(tick)


@pytest.fixture
def drive(body: FakeBody, bundle: Bundle, fake_time: FakeTime, monkeypatch: pytest.MonkeyPatch) -> Drive:
    """A drive of the test bundle for one second, by a source that is not interactive."""
    # Collecting the garbage of a whole test run takes longer than a drive.
    monkeypatch.setattr(firmware_bridge.drive.loop, "quiet_collector", nullcontext)
    return Drive(body, bundle, fake_time)


@pytest.fixture(scope="session")
def make_health() -> Callable[..., Health]:
    """The maker of what servos report."""
    return healthy


@pytest.fixture
def fake_time() -> FakeTime:
    """A time that only sleeping moves."""
    return FakeTime()


@pytest.fixture(autouse=True)
def hangup_is_not_ignored() -> Iterator[None]:
    """Let SIGHUP reach the tests and what they start, even where the whole run ignores it, as under nohup."""
    usual = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, usual)
