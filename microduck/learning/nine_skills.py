"""The nine skills: one library that a single policy learns, with every weight in sight.

All of them hold the heading that their command asks for, keep the head level, and hold zero inside their
command box, so that a robot whose commands stop can stop. What steps is paid for stepping by the clock first
of all: a duck that stands still is upright, straight and level, too, and would never find out that it can
walk.
"""

from __future__ import annotations

from typing import Any

from microduck.tasks import MicroDuckTask, make_task, standing_task

Corner = tuple[float, float]

STEPPING_WEIGHTS = {
    # Speed outweighs all else, and overshooting costs: plain progress is paid at any speed.
    "tracking": 5.0,
    "speed_error": 3.0,
    "progress": 0.0,
    "swing_height": 1.5,
    "phase_contact": 3.0,
    "double_support": -2.0,
    # What a duck at rest earns as well is paid little.
    "heading_hold": 2.5,
    "yaw_rate": 2.0,
    "upright": 1.0,
}
TURNING_WEIGHTS = {"yaw_rate": 5.0, "tracking": 3.0, "speed_error": 0.0}
HOPPING_WEIGHTS = {
    # Bob with the clock, push off with both feet, leave the floor, rise, and rise high.
    "hop_rhythm": 4.0,
    "launch": 40.0,
    "flight": 8.0,
    "jump": 20.0,
    "soar": 60.0,
    "single_support": -2.0,
    **dict.fromkeys(("air_time", "swing_height", "phase_contact", "double_support", "lin_vel_z"), 0.0),
    "progress": 0.0,
    "heading_hold": 2.0,
    "upright": 1.0,
}
STANDING_WEIGHTS = {"drift": -5.0, "heading_hold": 2.0, "action_rate": -0.3}

# Half of the episodes of what steps begin on the move: most ducks meet a walk long before they can start one.
MOVING_STARTS: dict[str, Any] = {
    "warm_start_velocity": (0.05, 0.25),
    "warm_start_fraction": 0.5,
    "joint_reset_noise_scale": 0.2,
}
COMMANDS: dict[str, Any] = {"command_resample_interval": (2.0, 5.0)}
"""A new command every few seconds [s]."""
ZEROS = (0.08, 0.5)
"""How often a stepping row is told to stay where it is, and to go straight."""
MAX_STEERING = 0.6
"""Yaw rate that is commanded while walking [rad/s]."""
MAX_TURNING = 1.0
"""Yaw rate that is commanded in place [rad/s]."""


def stepping_row(name: str, low: Corner, high: Corner, **overrides: Any) -> MicroDuckTask:
    """Return a row that steps at the commanded velocity of a box (vx, vy) [m/s] and turns as it is told.

    Args:
        name: name of the skill.
        low: lower corner of the box.
        high: upper corner.
        overrides: what `make_task` takes; reward weights come on top of `STEPPING_WEIGHTS`.
    """
    defaults = {
        "reward_weights": {**STEPPING_WEIGHTS, **overrides.pop("reward_weights", {})},
        "yaw_rate_interval": (-MAX_STEERING, MAX_STEERING),
        # Narrow: with 0.1 m/s, an error of 0.04 cost a sixth of the pay, and the duck crept.
        "tracking_std": 0.07,
        "yaw_rate_std": 0.4,
        "gait_frequency_hz": 1.0,
        "gait_frequency_per_mps": 5.0,
        "command_zero_fraction": ZEROS,
    }
    return make_task(low, high, name=name, **{**defaults, **MOVING_STARTS, **COMMANDS, **overrides})


def sidestep_row(name: str, low: Corner, high: Corner) -> MicroDuckTask:
    """Return a row that walks sideways; short steps, so more of them."""
    return stepping_row(name, low, high, gait_frequency_hz=1.5, gait_frequency_per_mps=4.0)


def turning_row(name: str, slowest: float, fastest: float) -> MicroDuckTask:
    """Return a row that turns in place, at a commanded rate [rad/s]."""
    return stepping_row(
        name,
        (0.0, 0.0),
        (0.0, 0.0),
        yaw_rate_interval=(slowest, fastest),
        yaw_rate_std=0.5,
        tracking_std=0.1,
        gait_frequency_hz=1.5,
        gait_frequency_per_mps=0.0,
        command_zero_fraction=(0.0, 0.1),
        reward_weights=TURNING_WEIGHTS,
    )


def hopping_row(name: str, fastest: float) -> MicroDuckTask:
    """Return a row that hops five times in two seconds, in place or up to `fastest` ahead [m/s]."""
    goal = {"tracking": 6.0, "speed_error": 8.0} if fastest else {"tracking": 4.0, "drift": -8.0}
    return make_task(
        (0.0, 0.0),
        (fastest, 0.0),
        name=name,
        reward_weights={**HOPPING_WEIGHTS, **goal},
        jump_target_height=0.025,
        hop_velocity_amplitude=0.4,
        launch_velocity_scale=0.6,
        tracking_std=0.2,  # within a hop, the speed swings about its mean
        tracking_off_axis_std=0.1,
        gait_frequency_hz=2.5,
        joint_reset_noise_scale=0.1,
        **COMMANDS,
    )


def nine_skills() -> list[MicroDuckTask]:
    """Return the rows of the library that `duck run` ships with."""
    zero = (0.0, 0.0)
    return [
        stepping_row("walk", zero, (0.35, 0.0)),
        standing_task(name="stand", reward_weights=STANDING_WEIGHTS, joint_reset_noise_scale=0.1),
        stepping_row("walk_backward", (-0.2, 0.0), zero),
        sidestep_row("sidestep_left", zero, (0.0, 0.12)),
        sidestep_row("sidestep_right", (0.0, -0.12), zero),
        turning_row("turn_left", 0.0, MAX_TURNING),
        turning_row("turn_right", -MAX_TURNING, 0.0),
        hopping_row("hop", 0.0),
        hopping_row("hop_forward", 0.15),
    ]
