"""What is said of a gap: its cause, how sure that is, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from microduck.replay.search import WORTH, Finding
from microduck.replay.size import NOISE
from microduck.replay.study import Study

FOREIGN = 30.0
"""Size from which what is left says that the recording is of no such duck as the simulator's: twenty times
noise. A trunk half as heavy again leaves 7 and soles that slip 10; the servos of `duck emulate`, which move
no body, 150."""
ADVICE: Mapping[str, str] = {
    "delay": "Let `duck bench` time the bus, and `duck doctor` look at return delays and the port's latency.",
    "p_gain_scale": "Compare the P registers with the bundle's (`duck doctor`); measure the loaded supply.",
    "servo_friction_scale": "Move the limp joints by hand: screws too tight, cables that drag, worn gears.",
    "encoder_offset": "Zero the joint with `duck calibrate`, and look for a horn that sits a tooth off.",
    "imu_mounting": "Measure the mounting with `duck calibrate`, and look whether the board is loose.",
    "voltage": "Charge the battery and look at plugs and cables: every contact costs voltage under load.",
    "joint_velocity_lateness": "The firmware averages speeds; training draws this age, so a policy bears it.",
    "imu_lateness": "The board answers with its last sample; training draws this age, so a policy bears it.",
}
"""What to do, by the property of the duck."""


UNEVEN_S = 0.001
"""Spread of the reads from which it is told of [s]; a quiet computer stays below."""


@dataclass(frozen=True)
class Verdict:
    """What is said of a gap.

    Attributes:
        title: in a line.
        sentences: why, one after the other.
        causes: findings that are called causes.
    """

    title: str
    sentences: tuple[str, ...]
    causes: tuple[Finding, ...]


def judge(study: Study) -> Verdict:
    """Return what is to be said."""
    verdict = _judge(study)
    return replace(verdict, sentences=(*verdict.sentences, *_uneven(study)))


def _judge(study: Study) -> Verdict:
    search = study.search
    causes = tuple(finding for finding in search.findings if finding.matters)
    if study.is_noise:
        return Verdict(
            "No gap but noise",
            (
                f"The gap has the size {search.start:.2f}; up to {NOISE:g} it is what sensors and "
                "contacts make of two equal ducks.",
            ),
            (),
        )
    if search.size >= FOREIGN:
        return Verdict("No duck that the simulator knows", (*_foreign(study), _left(study)), ())
    if not causes:
        small = bool(search.findings) and search.size <= NOISE
        title = "Small differences, no fault" if small else "A gap, but no cause stands out"
        return Verdict(title, (_nothing(study), _left(study)), ())
    names = ", and ".join(f"{finding.cause.name}: {finding.cause.say(finding.value)}" for finding in causes)
    said = [sentence for finding in causes for sentence in _explain(finding)]
    return Verdict(names[0].upper() + names[1:], (*said, *_small(study), _left(study)), causes)


def _explain(finding: Finding) -> list[str]:
    cause = finding.cause
    said = [
        f"With {cause.name} at {cause.say(finding.value)} in place of {cause.say(finding.own)} the gap "
        f"shrinks from {finding.before:.2f} to {finding.after:.2f}, by {100 * finding.share:.0f} %.",
        ADVICE[cause.parameter],
    ]
    if finding.rivals:
        rivals = ", ".join(rival.name for rival in finding.rivals)
        said.insert(1, f"It could also be: {rivals}; this log hardly tells them apart.")
    return said


def _small(study: Study) -> list[str]:
    small = [finding for finding in study.search.findings if not finding.matters]
    if not small:
        return []
    told = ", ".join(f"{finding.cause.name} {finding.cause.say(finding.value)}" for finding in small)
    return [f"Fitted as well, but too small to be a fault: {told}."]


def _foreign(study: Study) -> list[str]:
    nearest = [f"{one.cause.name} {one.cause.say(one.value)}" for one in study.search.findings]
    return [
        *([f"Nearest comes a duck with {', and '.join(nearest)}, which is not near."] if nearest else []),
        "More is different than any cause makes: another robot, emulated servos without a body, a duck that "
        "was carried, or a false calibration. Look at the pictures before anything is mended.",
    ]


def _nothing(study: Study) -> str:
    best = min(study.search.trials, key=lambda trial: trial.size)
    share = 100 * (1 - best.size / study.search.start)
    fitted = [f"{one.cause.name} {one.cause.say(one.value)}" for one in study.search.findings]
    if fitted:
        return f"What explains it is too small to be a fault: {', '.join(fitted)}."
    explains = f"The best of all causes, {best.cause.name} at {best.cause.say(best.best)}, explains"
    told = f"{explains} {share:.0f} % of it. " if share >= 1 else "No cause explains any of it. "
    return (
        f"{told}Less than {100 * WORTH:.0f} % is what a wrong cause may explain as well: look at masses, the "
        "floor, play in the joints, a single weak servo, or a hand that held the duck."
    )


def _left(study: Study) -> str:
    size = study.search.size
    return f"What is left has the size {size:.2f}" + (
        ": noise." if size <= NOISE else f"; noise ends at {NOISE:g}."
    )


def _uneven(study: Study) -> tuple[str, ...]:
    unsure_s = study.windows.unsure_s
    if unsure_s < UNEVEN_S:
        return ()
    return (
        f"Reads took unevenly long, so when the duck was measured is known to {1e3 * unsure_s:.1f} ms only. "
        "That hides small gaps and may leave some; record on a computer that has less to do.",
    )
