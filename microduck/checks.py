"""Checks that settings of more than one table share."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from hardware.errors import ConfigError


def check_whole(name: str, value: Any, least: int, bits: int = 63) -> None:
    """Refuse what is no whole number of `least` or more, below two to the power of `bits`.

    Raises:
        ConfigError: names the setting and the value.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) < 2**bits:
        raise ConfigError(
            f"{name} is {value!r}; it must be a whole number of {least} or more, below 2^{bits}"
        )


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False.

    Raises:
        ConfigError: names the setting and the value.
    """
    if not isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}; it must be True or False")
