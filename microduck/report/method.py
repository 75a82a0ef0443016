"""The end of a page: what was asked of the tasks, how that was measured, and where the report comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import degrees

from microduck.evaluation import NOMINAL, ROUGH
from microduck.evaluation.criteria import LEAST_SPEED, LEAST_TURN_RATE
from microduck.report.markup import Html, table, tag
from microduck.report.provenance import Provenance
from microduck.report.study import Study


def method(studies: Sequence[Study], made: Provenance) -> Iterator[Html]:
    """Yield how the results of one or two policies came about."""
    yield tag("h2", "What a task must reach")
    yield table(["", "where", "needed"], _criteria())
    yield tag(
        "p",
        "The score is 1 for a task that is met. It is the product, over the criteria, of how near each comes "
        "to its limit in the mean over the commands.",
    )
    yield tag("h2", "How this was measured")
    yield tag(
        "p",
        f"The policy's mean action on {studies[0].conditions}. {made.episodes} episodes of {made.seconds:g} "
        "s for each command, all of them counted, from STAND with small noise, on a seed that no training "
        "uses. Speeds and turn rates leave the first second out. p95: 95th percentile over episodes.",
    )
    yield table(["", ""], [[name, tag("code", value)] for name, value in _facts(studies, made).items()])


def rough_method() -> Html:
    """Return what is different about the ducks that all differ."""
    return tag(
        "p",
        "Masses, friction, servos, supply, delays, offsets and noise are drawn anew for every episode, "
        "servos are XL330s, and pushes change the speed by up to 0.3 m/s along each axis. Needed here: "
        f"survival of {ROUGH.survival:.0%} or more, speeds within {ROUGH.speed_error:g} m/s.",
    )


def _criteria() -> list[list[str]]:
    share, turn_share = f"{NOMINAL.speed_share:.0%}", f"{NOMINAL.turn_share:.0%}"
    drift, standing = degrees(NOMINAL.heading_drift or 0), 100 * (NOMINAL.standing_drift or 0)
    air, apex = f"{NOMINAL.airborne:.0%}", 100 * (NOMINAL.apex or 0)
    return [
        ["survival", "everywhere", f"{NOMINAL.survival:.0%} of the episodes"],
        ["speed", f"commands of {LEAST_SPEED:g} m/s or more", f"mean error of {share} or less"],
        [
            "turn rate",
            f"commands of {LEAST_TURN_RATE:g} rad/s or more",
            f"mean error of {turn_share} or less",
        ],
        ["heading", "slower turns and none", f"p95 of its drift {drift:g} degrees or less"],
        ["place", "tasks that only stand", f"p95 of the way from start to end {standing:g} cm or less"],
        ["hops", "tasks that pay for height", f"in the air {air} of the time, {apex:g} cm above STAND"],
    ]


def _facts(studies: Sequence[Study], made: Provenance) -> dict[str, str]:
    facts = {"command": made.command}
    for study in studies:
        subject = study.subject
        told = "".join(f"; {key} {value}" for key, value in subject.training.items())
        facts[f"policy of {subject.name}"] = f"sha256 {subject.digest}{told}"
    return facts | {
        "seed": str(made.seed),
        "made": made.made,
        "took": f"{made.wall_s:.0f} s on {made.cores} cores of {made.cpu}",
        "versions": ", ".join(f"{name} {number}" for name, number in made.versions.items()),
    }
