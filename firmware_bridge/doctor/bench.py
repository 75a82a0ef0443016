"""How much of a tick this machine needs: bus, inference and waking up, measured without any torque."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

import numpy as np

from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.summary import STAGES, Tick
from firmware_bridge.robot.body import Body, BodySample
from firmware_bridge.robot.devices import name_of
from firmware_bridge.skills.bundle import Bundle
from firmware_bridge.wire import protocol, registers
from firmware_bridge.wire.bus import Bus
from firmware_bridge.wire.port import BITS_PER_BYTE
from hardware import contract, servo
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import BusError, DeviceError, PortError
from hardware.joints import SERVO_IDS

MOST_LATE = 1e-3
"""Share of ticks that may end after the next deadline, and of reads that may fail, for a machine to do."""
GOALS_WIRE_S = (
    len(protocol.sync_write(registers.GOAL_POSITION.address, dict.fromkeys(SERVO_IDS, bytes(4))))
    * BITS_PER_BYTE
    / servo.BAUD
)
"""Time that a tick's goals are on the wire after they were handed over [s]."""

_log = logging.getLogger(__name__)


class Subject(NamedTuple):
    """What is measured.

    Attributes:
        bundle: whose policy is evaluated, on an observation of zeros.
        body: a limp duck; None to measure the machine alone.
        record: takes each tick, as of a recording; None for no recording.
    """

    bundle: Bundle
    body: Body | None
    record: Callable[[Tick], None] | None = None


class Spread(NamedTuple):
    """How a time is spread over the ticks [s]: median, 99th percentile and largest."""

    p50: float
    p99: float
    most: float

    @classmethod
    def of(cls, times: Sequence[float]) -> Spread:
        """Return the spread of at least one time; percentiles are times that occurred."""
        ordered = sorted(times)
        return cls(*(ordered[ceil(share * len(ordered)) - 1] for share in (0.5, 0.99, 1.0)))


@dataclass
class Times:
    """What was measured, a value for each tick [s].

    Attributes:
        late: waking up after the deadline.
        read: the bus read, also one that failed.
        policy: one inference.
        write: handing the goals over.
        work: from waking up until the servos have their goals.
        record: handing the tick over to the recording.
        failed_reads: number of reads that brought no sample.
    """

    late: list[float] = field(default_factory=list)
    read: list[float] = field(default_factory=list)
    policy: list[float] = field(default_factory=list)
    write: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    record: list[float] = field(default_factory=list)
    failed_reads: int = 0


@dataclass(frozen=True)
class Measurement:
    """What a bench measured.

    Attributes:
        ticks: ticks measured.
        stages: spread of each stage, by name.
        over: ticks that ended after the next deadline.
        failed_reads: reads that brought no sample.
    """

    ticks: int
    stages: Mapping[str, Spread]
    over: int
    failed_reads: int

    @property
    def fits(self) -> bool:
        """Whether ticks end in time and reads succeed, all but one in a thousand."""
        return max(self.over, self.failed_reads) <= MOST_LATE * self.ticks

    @property
    def verdict(self) -> str:
        """The conclusion in a sentence."""
        budget = CONTROL_PERIOD_S * 1e3
        share = f"{self.over} of {self.ticks} ticks took more than their {budget:g} ms"
        if self.failed_reads > MOST_LATE * self.ticks:
            return f"Not good enough: {self.failed_reads} of {self.ticks} reads failed, and {share}."
        if not self.fits:
            return f"Too slow: {share}."
        need = self.stages["late"].p99 + self.stages["work"].p99
        return f"Fits: 99 of 100 ticks need {need * 1e3:.1f} ms of {budget:g} ms or less; {share}."


def refuse_torque(bus: Bus) -> None:
    """Prove that the duck is limp, as far as its servos answer; a bench must not disturb one that stands.

    Raises:
        DeviceError: names the joints whose torque is on.
    """
    blocks = bus.sync_read_available(registers.TORQUE_ENABLE.address, 1, SERVO_IDS)
    stiff = [device for device, block in blocks.items() if block.data != b"\0"]
    if stiff:
        raise DeviceError(
            f"torque is on at {name_of(*stiff)}; lay the duck down and switch it off with `duck stop`"
        )


def measure(
    subject: Subject,
    seconds: float,
    stopped: Callable[[], object] = lambda: None,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Measurement:
    """Run ticks as the loop does, without torque, and time their stages.

    The goals written are the angles just read: limp servos take them and stay limp.

    Args:
        subject: what is measured.
        seconds: how long [s]; one tick at least.
        stopped: returns something true to end early.
        now: monotonic time [s].
        sleep: waits for a time [s].

    Raises:
        PortError: the serial port fails.
        BundleError: the policy cannot be evaluated.
    """
    times = Times()
    start, index = now(), 0
    last = max(1, round(seconds / CONTROL_PERIOD_S))
    while index < last and not (times.work and stopped()):
        # Deadlines that a slow tick slept through are left out, so that it does not make the next ones late.
        index = max(index + 1, ceil((now() - start) / CONTROL_PERIOD_S))
        due = start + index * CONTROL_PERIOD_S
        sleep(max(0.0, due - now()))
        _tick(subject, due, times, now)
    return _measurement(times)


def _tick(subject: Subject, due: float, times: Times, now: Callable[[], float]) -> None:
    """Carry out one tick and note how long its stages took."""
    bundle, body, record = subject
    woke = now()
    times.late.append(woke - due)
    sample = None
    if body is not None:
        sample = _read(body, due + CONTROL_PERIOD_S)
        times.read.append(now() - woke)
        times.failed_reads += sample is None
    began = now()
    observation = np.zeros(contract.width(bundle.layout), np.float32)
    skill = bundle.skill()
    action = bundle.act(observation, skill)
    ended = now()
    times.policy.append(ended - began)
    on_the_wire = 0.0
    if body is not None and sample is not None:
        body.write(sample.position)
        times.write.append(now() - ended)
        on_the_wire = GOALS_WIRE_S
    times.work.append(now() - woke + on_the_wire)
    if record is not None:
        tick = _told(woke, skill.name, sample, observation, action)
        began = now()
        record(tick)
        times.record.append(now() - began)


def _told(
    time_s: float, skill: str, sample: BodySample | None, observation: np.ndarray, action: np.ndarray
) -> Tick:
    """Return a tick as the loop would tell it; a limp duck's, but whose policy ran."""
    return Tick(
        time_s=time_s,
        mode=Mode.LIMP,
        reason="a bench",
        mode_s=0.0,
        skill=skill,
        sample=sample,
        fresh=sample is not None,
        requested=np.zeros(3),
        command=np.zeros(3),
        head=np.zeros(len(contract.HEAD_NAMES)),
        limited_by=(),
        observation=observation,
        action=action,
        requested_targets=action,
        targets=action,
        rate_hz=0.0,
        missed=0,
        stages=dict.fromkeys(STAGES, 0.0),
        bus_errors=0,
    )


def _read(body: Body, deadline: float) -> BodySample | None:
    try:
        return body.read(deadline)
    except PortError:
        raise
    except BusError as error:
        _log.debug("%s", error)
        return None


def _measurement(times: Times) -> Measurement:
    stages = {
        name: Spread.of(values) for name, values in vars(times).items() if isinstance(values, list) and values
    }
    over = sum(late + work > CONTROL_PERIOD_S for late, work in zip(times.late, times.work, strict=True))
    return Measurement(len(times.work), stages, over, times.failed_reads)
