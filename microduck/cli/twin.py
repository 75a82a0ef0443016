"""`microduck twin`."""

from __future__ import annotations

from pathlib import Path

import tyro

from firmware_bridge.cli.recording import refuse_recording
from hardware.errors import ConfigError
from microduck.cli.console import console


def twin(file: tyro.conf.Positional[Path], seed: int = 0, strength: float = 1.0) -> None:
    """Draw a duck from the full ranges and write it down; try a policy on it with --twin FILE elsewhere.

    Args:
        file: TOML file to write, for reading and editing.
        seed: which duck; equal seeds give equal ducks.
        strength: 0 for the nominal duck, 1 for the full ranges.
    """
    from microduck.randomization import Randomization, Twin, load_twin, save_twin

    refuse_recording(file)  # also one that is still made
    if file.exists():
        try:
            load_twin(file)
        except ConfigError as error:
            raise ConfigError(f"{file} is there and no twin; name another file") from error
    save_twin(Twin.draw(Randomization.full().scaled(strength), seed), file)
    console.print(f"duck {seed} -> {file}")
