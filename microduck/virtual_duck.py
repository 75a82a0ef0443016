"""A duck on a serial port: the emulated bus coupled to one simulated body in real time.

`duck run` against its port is `duck run` against a robot: the same bytes, start-up checks and torque switch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from math import acos, degrees, isfinite
from pathlib import Path
from typing import Protocol

import numpy as np

from firmware_bridge.drive.limits import Limits
from firmware_bridge.emulator.duck import EmulatedDuck
from firmware_bridge.wire.protocol import Packet
from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import ConfigError
from microduck.hand import Grip, Hand
from microduck.live_duck import LiveDuck
from microduck.physics.model import load_model
from microduck.randomization.body_senses import BodySenses, TwinSenses
from microduck.randomization.twin import Twin
from microduck.randomization.twin_body import twin_body
from microduck.render import Renderer, Shot, render_video
from microduck.run_report import RunRecorder, RunReport, save_reports, told_to_sit
from microduck.viewer import Viewer
from microduck.virtual_body import STEP_S, VirtualBody

TEMPERATURE = 30.0
"""What every servo reports [deg C]; heat is not simulated."""
FILM_S = 60.0
"""Longest part of a run that is filmed [s]."""
TIPPING_TILT = acos(-Limits().tip_gravity_z)
"""Lean at the end of a run [rad] that does not pass for standing: beyond it, robots see a fall under way."""
_FILM_EVERY = 2
"""Poses per picture: 25 pictures a second look smooth and take half the time to draw in software."""
_TICKS_PER_PICTURE = round(CONTROL_PERIOD_S / STEP_S)
_ROUNDING_S = 1e-6

Notify = Callable[[str], None]


class Bus(Protocol):
    """What the virtual duck needs of the emulated bus; see `EmulatedDuck`.

    Attributes:
        on_packet: called with each packet before it is dealt with.
    """

    on_packet: Callable[[Packet], None]

    @property
    def torque(self) -> np.ndarray:
        """Whether each joint's torque is on, (14,) bool."""

    @property
    def goals(self) -> np.ndarray:
        """Goal of each joint, (14,) [rad]."""

    @property
    def p_gains(self) -> np.ndarray:
        """Position P register of each joint, (14,)."""

    def set_state(
        self,
        position: np.ndarray,
        velocity: np.ndarray | None = None,
        current: np.ndarray | None = None,
        voltage: np.ndarray | float | None = None,
        temperature: np.ndarray | float | None = None,
    ) -> None:
        """Set what the servos measure; what is not given stays."""

    def set_imu(self, angular_velocity: np.ndarray, quaternion: np.ndarray) -> None:
        """Set the trunk's motion."""


@dataclass(frozen=True)
class VirtualDuckOptions:
    """What a virtual duck does besides being there.

    Attributes:
        view: show it in a window.
        seconds: time until it ends [s]; None until stopped.
        report: JSON file of its runs, written empty at the start and anew at the end of each.
        video: mp4 file of its last run, at most a minute, written at the end.
        link: path that points to the port while the duck is there.
        twin: which duck to be; None for the nominal one with position servos and perfect sensors.
    """

    view: bool = False
    seconds: float | None = None
    report: Path | None = None
    video: Path | None = None
    link: Path | None = None
    twin: Twin | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None and not (isfinite(self.seconds) and self.seconds > 0):
            raise ConfigError(f"seconds is {self.seconds}; it must be more than 0, or absent to run on")
        if self.video is not None and self.video.suffix != ".mp4":
            raise ConfigError(f"video {self.video} must end in .mp4")


class VirtualDuck:
    """Couples a bus to a body and keeps the record of its runs.

    A run begins when the hand lets go and ends when no servo has torque any more.

    Args:
        bus: the emulated bus.
        body: the simulated body.
        notify: told in a sentence what happens to the duck.
        report: JSON file of the runs, or None.
        senses: the body's sensors; perfect ones when omitted.

    Attributes:
        reports: the runs that ended, oldest first.
        film: poses of the last run, (21,) each, one each control period [m, quaternion w x y z, rad].
    """

    def __init__(
        self,
        bus: Bus,
        body: VirtualBody,
        notify: Notify,
        report: Path | None = None,
        senses: BodySenses | None = None,
    ) -> None:
        self._bus, self._body, self._notify, self._report = bus, body, notify, report
        self._senses = senses or BodySenses(body)
        self._hand = Hand(body)
        self._recorder: RunRecorder | None = None
        self._stiff = np.zeros_like(bus.torque)
        self._sample_s = 0.0  # when the current run is sampled next
        self.reports: list[RunReport] = []
        self.film: list[np.ndarray] = []
        bus.set_state(body.position, temperature=TEMPERATURE)
        self._publish()

    def step(self, lasts: float = STEP_S, mean_goals: np.ndarray | None = None) -> None:
        """Let one physics step pass: goals in, motion out.

        Args:
            lasts: the time it takes [s].
            mean_goals: the goals on average over it, (14,) [rad]; when omitted, the bus's own.
        """
        torque, goals = self._bus.torque, self._bus.goals
        # What was asked of a servo before it got torque means nothing.
        mean = goals if mean_goals is None else np.where(torque & self._stiff, mean_goals, goals)
        self._stiff = torque
        self._body.set_servos(torque, self._senses.goals(mean), self._bus.p_gains)
        grip = self._hand.update(torque, goals, lasts)
        if grip is Grip.LET_GO:
            self._start_run()
        elif grip is Grip.HELD:
            self._notify("the hand holds the duck again")
        sits = told_to_sit(goals)
        if sits or not torque.any():
            self.end_run(sits)
        self._body.step(lasts)
        self._record()
        self._publish()

    def run(self, seconds: float | None, stop: Callable[[], bool], viewer: Viewer | None = None) -> None:
        """Live in real time.

        Args:
            seconds: time until the return [s]; None until stopped.
            stop: asked at every tick whether to stop.
            viewer: shown the duck; closing it stops.
        """
        live = LiveDuck(self, self._bus, guard=viewer.lock if viewer else nullcontext)

        def over() -> bool:
            return stop() or (viewer is not None and not viewer.open)

        def show(tick: int) -> None:
            if viewer is not None and tick % _TICKS_PER_PICTURE == 0:
                viewer.show()

        self._bus.on_packet = live.hear
        live.run(seconds, over, show)
        self.end_run()

    def end_run(self, sat: bool = False) -> None:
        """End the run that goes on, if there is one, and write the report.

        Args:
            sat: whether it ends because the duck sits down.
        """
        if self._recorder is None:
            return
        report = self._recorder.report(sat)
        self._recorder = None
        self.reports.append(report)
        self._notify(
            f"run {len(self.reports)}: {report.seconds:.1f} s, {report.path_m:.2f} m of path, "
            f"{self._outcome(report, sat)}"
        )
        if self._report is not None:
            save_reports(self._report, self.reports)

    def _outcome(self, report: RunReport, sat: bool) -> str:
        if report.fell:
            return "fell"
        tips = not sat and self._body.tilt > TIPPING_TILT
        return f"leaned by {degrees(self._body.tilt):.0f} degrees at its end" if tips else "did not fall"

    def _start_run(self) -> None:
        self._notify("the hand lets go")
        self._recorder = RunRecorder(self._body)
        self._recorder.sample()
        self._sample_s = self._body.data.time + CONTROL_PERIOD_S
        self.film = [self._body.data.qpos.copy()]

    def _record(self) -> None:
        if self._recorder is None:
            return
        self._recorder.watch()
        if self._body.data.time > self._sample_s - _ROUNDING_S:
            self._sample_s += CONTROL_PERIOD_S
            self._recorder.sample()
            if len(self.film) <= FILM_S / CONTROL_PERIOD_S:
                self.film.append(self._body.data.qpos.copy())

    def _publish(self) -> None:
        told = self._senses.read()
        self._bus.set_state(told.position, told.velocity, told.current, told.voltage)
        self._bus.set_imu(told.angular_velocity, told.orientation)


def run_virtual_duck(
    options: VirtualDuckOptions, notify: Notify, stop: Callable[[], bool] = lambda: False
) -> list[RunReport]:
    """Be a duck on a serial port until the time is over, the window closed or `stop` true.

    Args:
        options: what to do besides.
        notify: told the port first, then what happens to the duck.
        stop: asked at every tick whether to stop.

    Returns:
        The runs, oldest first.

    Raises:
        ConfigError: a file or link cannot be written, or a file lies where the link should be.
        RenderError: a view or a video was asked for and cannot be had; a video is tried before the start.
    """
    if options.video is not None:
        Renderer(load_model(), Shot()).close()
    body, senses = _make(options.twin)
    bus = EmulatedDuck(follow=False)
    duck = VirtualDuck(bus, body, notify, options.report, senses)
    with ExitStack() as stack:
        stack.enter_context(bus)
        if options.link is not None:
            stack.enter_context(_linked(bus.port, options.link))
        if options.report is not None:  # after the link: where that is refused, an old report stays
            save_reports(options.report, [])
        viewer = stack.enter_context(Viewer(body.model, body.data)) if options.view else None
        notify(f"the virtual duck is on {options.link or bus.port}")
        duck.run(options.seconds, stop, viewer)
    if options.video is not None:
        write_film(options.video, duck.film, notify)
    return duck.reports


def _make(twin: Twin | None) -> tuple[VirtualBody, BodySenses]:
    body = VirtualBody() if twin is None else twin_body(twin)
    return body, BodySenses(body) if twin is None else TwinSenses(body, twin)


def write_film(path: Path, film: list[np.ndarray], notify: Notify) -> None:
    """Draw the poses of a run, one each control period, into an mp4.

    Raises:
        RenderError: no picture or no video can be made on this machine.
    """
    if not film:
        notify(f"no run to film, so no {path}")
        return
    notify(f"filming {len(film) * CONTROL_PERIOD_S:.0f} s of the last run")
    shot = Shot(fps=1 / (_FILM_EVERY * CONTROL_PERIOD_S))
    render_video(path, load_model(), np.stack(film[::_FILM_EVERY]), shot)
    notify(f"wrote {path}")


@contextmanager
def _linked(port: str, link: Path) -> Iterator[None]:
    """Let `link` point to the port inside the `with` block."""
    temporary = link.with_name(f".{os.getpid()}.link")
    try:
        # Only what was a port may give way: one that is gone, or whose number is now another terminal's.
        if os.path.lexists(link) and not (link.is_symlink() and (link.is_char_device() or not link.exists())):
            raise ConfigError(
                f"{link} is there and leads to no port; choose another path for the port's link"
            )
        os.symlink(port, temporary)
        os.replace(temporary, link)
    except OSError as error:
        raise ConfigError(f"cannot make the link {link} ({error.strerror}); choose another path") from error
    try:
        yield
    finally:
        if link.is_symlink() and os.readlink(link) == port:
            link.unlink()
