"""Packages that only some users need."""

from __future__ import annotations

import importlib
from typing import Any

from hardware.errors import ConfigError


def extra(module: str, name: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: what to import.
        name: the toolkit's extra that brings it.

    Raises:
        ConfigError: the package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ConfigError(
            f"this needs the package {package} ({error}): pip install 'microduck-toolkit[{name}]'"
        ) from error
