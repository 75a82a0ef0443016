"""The manifest of a skill bundle: strict reading, and the check that it was made for this contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardware import contract
from hardware.errors import BundleError, ContractError
from hardware.files import parse_object, read_bounded
from hardware.joints import NUM_JOINTS

SCHEMA = 1
KIND = "microduck-skill-bundle"
MANIFEST_FILE, POLICY_FILE, TASKS_FILE = "manifest.json", "policy.onnx", "tasks.tdz"
MAX_BYTES = 1024 * 1024
MAX_SKILLS = 1024
MAX_LINE = 600
"""Most characters of a differing field that a message shows."""
MAX_P_GAIN = 400
"""Stiffest P register a bundle may ask for: the XL330's factory value, twice that of a walking duck."""
MAX_ACTION_SCALE = 1.6
"""Largest joint travel of an action of 1 [rad]: a quarter turn, the range of most joints."""
MAX_COMMAND = 10.0
"""Largest command of any box, far beyond what a 0.3 m duck can do [m/s, rad/s]."""
MAX_GAIT_HZ = 10.0
"""Largest frequency of the gait clock [Hz] and largest change of it per speed [Hz s/m]."""


@dataclass(frozen=True)
class Skill:
    """One thing a policy can do.

    Attributes:
        name: what the user calls it.
        task_id: row of the task library, fed to the policy.
        command_low: lower corner of the command box (vx, vy, yaw rate) [m/s, m/s, rad/s].
        command_high: upper corner.
        gait_frequency_hz: frequency of the gait clock at command zero [Hz].
        gait_frequency_per_mps: change of it with the planar speed asked for [Hz s/m].
    """

    name: str
    task_id: int
    command_low: tuple[float, ...]
    command_high: tuple[float, ...]
    gait_frequency_hz: float
    gait_frequency_per_mps: float


@dataclass(frozen=True)
class PolicyFile:
    """What the manifest says of the policy's file."""

    sha256: str
    opset: int
    ir_version: int


@dataclass(frozen=True)
class Manifest:
    """A manifest that was made for this toolkit's contract.

    Attributes:
        layout: observation layout.
        action_scale: joint travel for an action of 1 [rad].
        p_gain: position P register the policy was trained for.
        policy: the policy's file.
        tasks_sha256: SHA-256 of the task archive.
        skills: the skills in the order they are listed.
    """

    layout: str
    action_scale: float
    p_gain: int
    policy: PolicyFile
    tasks_sha256: str
    skills: tuple[Skill, ...]


class _Table:
    """A JSON object whose fields are taken out one by one, each with its type checked."""

    def __init__(self, name: str, data: Mapping[str, Any]) -> None:
        self._name, self.data = name, data

    def take(self, key: str, kind: type, wanted: str) -> Any:
        value = self.data.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.bad(key, wanted)
        return value

    def bad(self, key: str, wanted: str) -> BundleError:
        found = repr(self.data[key])[:80] if key in self.data else "absent"
        return BundleError(f"{self._name}: {key!r} is {found}; it must be {wanted}")

    def table(self, key: str) -> _Table:
        return _Table(f"{self._name}, {key}", self.take(key, dict, "an object"))

    def exactly(self, key: str, value: object) -> None:
        if type(self.data.get(key)) is not type(value) or self.data[key] != value:
            raise self.bad(key, f"{value!r} for this toolkit")

    def integer(self, key: str, low: int, high: int) -> int:
        value = self.take(key, int, f"a whole number in [{low}, {high}]")
        if not low <= value <= high:
            raise self.bad(key, f"a whole number in [{low}, {high}]")
        return value

    def number(self, key: str, low: float, high: float) -> float:
        value = self.take(key, int | float, f"a number in [{low:g}, {high:g}]")  # type: ignore[arg-type]
        if not low <= value <= high:
            raise self.bad(key, f"a number in [{low:g}, {high:g}]")
        return float(value)

    def sha256(self, key: str) -> str:
        value = self.take(key, str, "64 hexadecimal digits")
        if len(value) != 64 or not set(value) <= set("0123456789abcdef"):
            raise self.bad(key, "64 hexadecimal digits")
        return value

    def command(self, key: str) -> tuple[float, ...]:
        wanted = f"three numbers (vx, vy, yaw rate) within +-{MAX_COMMAND:g}"
        values = self.take(key, list, wanted)
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        if len(values) != 3 or not numbers or not all(abs(v) <= MAX_COMMAND for v in values):
            raise self.bad(key, wanted)
        return tuple(float(v) for v in values)


def read_manifest(path: Path) -> Manifest:
    """Read a bundle's manifest.

    Raises:
        BundleError: it is absent, or a field is missing or has a bad value.
        ContractError: it was made for another contract; the message says which fields differ.
    """
    data = parse_object(read_bounded(path, MAX_BYTES, BundleError), str(path), BundleError)
    table = _Table(str(path), data)
    table.exactly("kind", KIND)
    table.exactly("schema", SCHEMA)
    theirs = table.table("contract")
    layout = theirs.take("layout", str, f"one of {sorted(contract.LAYOUTS)}")
    scale = theirs.number("action_scale_rad", 1e-3, MAX_ACTION_SCALE)
    gain = theirs.integer("position_p_gain", 1, MAX_P_GAIN)
    _check_contract(
        path, contract.describe(layout, scale, gain), theirs.data, table.sha256("contract_digest")
    )
    tasks = table.table("tasks")
    tasks.exactly("file", TASKS_FILE)
    policy = _policy(path, table.table("policy"), layout)
    return Manifest(layout, scale, gain, policy, tasks.sha256("sha256"), _skills(path, table))


def _check_contract(path: Path, ours: dict[str, Any], theirs: Mapping[str, Any], digest: str) -> None:
    lines = [line[:MAX_LINE] for line in contract.differences(ours, theirs)]
    if ours["observation"] != theirs.get("observation"):
        lines.insert(0, f"observation width: {_width(ours)} here, {_width(theirs)} there")
    if lines:
        raise ContractError(
            f"{path} was made for another contract; export it again with this toolkit, "
            "or drive it with the toolkit that made it:\n  " + "\n  ".join(lines)
        )
    if digest != contract.digest(ours):
        raise ContractError(
            f"{path}: contract_digest is {digest}, but the contract has {contract.digest(ours)}; "
            "the manifest was changed after its export, so export it again"
        )


def _width(description: Mapping[str, Any]) -> int | str:
    blocks = description.get("observation")
    if not isinstance(blocks, list):
        return "unknown"
    widths = [block[1] for block in blocks if isinstance(block, list) and len(block) == 3]
    return sum(widths) if len(widths) == len(blocks) and all(type(w) is int for w in widths) else "unknown"


def _policy(path: Path, table: _Table, layout: str) -> PolicyFile:
    table.exactly("file", POLICY_FILE)
    inputs = table.table("inputs")
    shape = inputs.take("observation", list, "[1, width]")
    if shape != [1, contract.width(layout)]:
        raise ContractError(
            f"{path}: the policy takes observations of shape {shape}, but layout {layout!r} is "
            f"{contract.width(layout)} wide; train it again for this layout"
        )
    inputs.exactly("task_id", [1, 1])
    table.table("output").exactly("action", [1, NUM_JOINTS])
    return PolicyFile(
        table.sha256("sha256"), table.integer("opset", 1, 1000), table.integer("ir_version", 1, 1000)
    )


def _skills(path: Path, table: _Table) -> tuple[Skill, ...]:
    rows = table.take("skills", list, "a list of skills")
    if not 1 <= len(rows) <= MAX_SKILLS or not all(isinstance(row, dict) for row in rows):
        raise BundleError(f"{path}: 'skills' must list 1 to {MAX_SKILLS} objects; it has {len(rows)} entries")
    skills = tuple(_skill(_Table(f"{path}, skill {i}", row)) for i, row in enumerate(rows))
    if len({skill.name for skill in skills}) != len(skills):
        raise BundleError(f"{path}: two skills share a name: {sorted(skill.name for skill in skills)}")
    return skills


def _skill(table: _Table) -> Skill:
    name = table.take("name", str, "a name")
    if not (0 < len(name) <= 64 and name.isprintable()):
        raise table.bad("name", "1 to 64 printable characters")
    low, high = table.command("command_low"), table.command("command_high")
    if any(a > b for a, b in zip(low, high, strict=True)):
        raise table.bad("command_low", f"no higher than command_high {list(high)}")
    return Skill(
        name,
        table.integer("task_id", 0, MAX_SKILLS - 1),
        low,
        high,
        table.number("gait_frequency_hz", 0.0, MAX_GAIT_HZ),
        table.number("gait_frequency_per_mps", -MAX_GAIT_HZ, MAX_GAIT_HZ),
    )
