"""gap.html: one file with all its pictures inside, for a phone as for a desk."""

from __future__ import annotations

from collections.abc import Iterator

from firmware_bridge.recording import Log
from microduck.replay import charts
from microduck.replay.document import Source
from microduck.replay.gap import Gap, JointGap
from microduck.replay.simulate import LED
from microduck.replay.size import NOISE
from microduck.replay.study import Study
from microduck.replay.verdict import Verdict
from microduck.replay.windows import COUNTED, WARM_UP
from microduck.report.markup import Html, captioned, table, tag
from microduck.report.style import document

_SERVOS = {
    "position": "position servos, linearised at one voltage, as policies are trained with by default",
    "xl330": "servos with motor, supply and a gearbox that rubs under load",
}


def page(source: Source, log: Log, study: Study, verdict: Verdict) -> str:
    """Return a study as HTML that needs no other file."""
    return document(f"{source.log}: {verdict.title}", _body(source, log, study, verdict))


def _body(source: Source, log: Log, study: Study, verdict: Verdict) -> Iterator[Html]:
    yield from (tag("p", sentence) for sentence in verdict.sentences)
    if log.problem:
        yield tag("p", f"The log is not whole: {log.problem}.", class_="unmet")
    yield tag("h2", "The gap in numbers")
    yield _totals(study)
    yield tag("h2", "What each cause explains")
    yield captioned(charts.causes(study), "Each cause alone, at the value that leaves the least gap.")
    yield tag("h2", "Joint by joint")
    yield captioned(charts.by_joint(study), "How far the robot's joints are from the simulator's.")
    yield _joints(study.gaps[0])
    if study.search.findings:
        yield tag("details", tag("summary", "The same to the nearest duck"), _joints(study.gaps[1]))
    yield captioned(
        charts.over_time(study), "The same over the log: a gap that comes and goes has its own cause."
    )
    yield tag("h2", "Robot over simulation")
    yield captioned(charts.joints(study), "Joint angles in the middle of the log, under the same targets.")
    speeds = captioned(charts.joints(study, speeds=True), "Joint speeds, likewise.")
    yield tag("details", tag("summary", "Joint speeds"), speeds)
    yield captioned(charts.trunk(study), "The trunk, compared before it is led back in every period.")
    yield tag("h2", "How this was made")
    yield from (tag("p", text, class_="faint") for text in _method(source, log, study))


def _totals(study: Study) -> Html:
    before, after = study.gaps
    rows = [
        ["size, noise up to " + f"{NOISE:g}", f"{study.search.start:.2f}", f"{study.search.size:.2f}"],
        ["joint angles, RMS [mrad]", *(f"{1e3 * gap.position_rms:.2f}" for gap in (before, after))],
        ["joint angles, p95 [mrad]", *(f"{1e3 * gap.position_p95:.2f}" for gap in (before, after))],
        ["robot's joints are later by [ms]", *(f"{1e3 * gap.delay:+.1f}" for gap in (before, after))],
        ["joint speeds, RMS [rad/s]", *(f"{gap.velocity_rms:.3f}" for gap in (before, after))],
        ["turn rate, RMS [rad/s]", *(f"{gap.turn_rate_rms:.3f}" for gap in (before, after))],
        ["gravity, RMS [mrad]", *(f"{1e3 * gap.gravity_rms:.2f}" for gap in (before, after))],
        ["gravity, p95 [mrad]", *(f"{1e3 * gap.gravity_p95:.2f}" for gap in (before, after))],
    ]
    return table(["robot minus simulation", "simulation", "nearest duck"], rows)


def _joints(gap: Gap) -> Html:
    head = [
        "joint",
        "RMS [mrad]",
        "p95 [mrad]",
        "bias [mrad]",
        "later by [ms]",
        "speed, RMS [rad/s]",
        "robot off its target [mrad]",
        "simulation off it [mrad]",
    ]
    return table(head, [_joint(one) for one in gap.joints])


def _joint(one: JointGap) -> list[str]:
    return [
        one.joint,
        f"{1e3 * one.rms:.2f}",
        f"{1e3 * one.p95:.2f}",
        f"{1e3 * one.bias:+.2f}",
        f"{1e3 * one.delay:+.1f}",
        f"{one.velocity_rms:.3f}",
        f"{1e3 * one.robot_error:.1f}",
        f"{1e3 * one.simulated_error:.1f}",
    ]


def _method(source: Source, log: Log, study: Study) -> Iterator[str]:
    servos, driven = study.servos, study.driven
    yield (
        f"The recorded targets went to a simulated duck with {_SERVOS[servos.actuator]} ({servos.actuator}), "
        f"at P gain {servos.p_gain:g}. It began as measured in windows of {WARM_UP + COUNTED} periods, whose "
        f"first {WARM_UP} do not count. In each its trunk was led after the IMU by {LED:g} of the difference."
    )
    yield (
        f"The robot's loop took {1e3 * study.windows.loop_s:.1f} ms from a measurement to the target it led "
        "to. Simulated ducks are measured when the robot was, and hear each target when it did, so that "
        "neither this nor a loop off the beat is part of the gap."
    )
    for name, size in study.others.items():
        yield f"With servos of the kind {name} the gap would be {size:.2f} at best, with at most one cause."
    if servos.actuator == "position":
        yield "A twin always has servos of the kind xl330, so that twin.toml moves a little otherwise."
    if study.volts is not None:
        yield f"The servos measured {study.volts:.1f} V on average."
    left = "; ".join(f"{count} {reason}" for reason, count in driven.left_out.items()) or "none"
    yield (
        f"Replayed: {driven.seconds:.1f} s in {len(driven.stretches)} stretches, of which {driven.bridged} "
        f"periods had no tick and were bridged. Ticks left out: {left}."
    )
    begun = f"{log.meta.get('started', 'at no known time')!s:.40}"
    yield f"Made {source.made} by: {source.command}. The log was begun {begun}."
