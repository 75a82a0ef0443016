"""How a drive is to go, and how its caller takes part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from firmware_bridge.drive.clock import Ticker
from firmware_bridge.drive.limits import Battery, Limits
from firmware_bridge.drive.modes import Mode
from firmware_bridge.drive.summary import Tick


@dataclass(frozen=True)
class LoopOptions:
    """How to drive.

    Attributes:
        skill: name of the skill to begin with, None for the bundle's first.
        seconds: time to drive after the rise [s]; None drives until stopped.
        limits: where to step in.
        battery: what feeds the servos.
        p_gain: position P register of every servo, None for the one the policy was trained for.
    """

    skill: str | None = None
    seconds: float | None = None
    limits: Limits = field(default_factory=Limits)
    battery: Battery = field(default_factory=Battery)
    p_gain: int | None = None


@dataclass(frozen=True)
class Hooks:
    """How the caller takes part.

    Attributes:
        stop: returns why to end, or None to go on; asked at every tick.
        hurry: whether to end without sitting down first; asked while the duck sits down.
        on_mode: told of each new mode and its reason.
        on_news: told, a line each, of what else the user should know.
        on_tick: told of each tick.
        ticker: wakes the loop.
    """

    stop: Callable[[], str | None] = lambda: None
    hurry: Callable[[], bool] = lambda: False
    on_mode: Callable[[Mode, str], None] = lambda mode, reason: None
    on_news: Callable[[str], None] = lambda text: None
    on_tick: Callable[[Tick], None] = lambda tick: None
    ticker: Ticker = field(default_factory=Ticker)
