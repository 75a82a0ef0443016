"""Leaves what was found in a folder; what was there stays until each new file is whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firmware_bridge.recording import Log
from hardware.errors import ConfigError
from hardware.files import parse_object, read_bounded, replacing
from microduck.randomization import save_twin
from microduck.replay import GAP_FILE, PAGE_FILE, TWIN_FILE
from microduck.replay.document import KIND, Source, as_text
from microduck.replay.page import page
from microduck.replay.study import Study
from microduck.replay.verdict import Verdict
from microduck.report.write import check_writable

MAX_GAP_BYTES = 4 * 1024 * 1024
"""Largest gap.json that is looked into; one holds a few kilobytes."""


@contextmanager
def folder_for(folder: Path, twin: Path | None) -> Iterator[None]:
    """Make a folder if need be, for a block that fills it; one that stays empty is taken away again.

    Args:
        folder: for the page, the numbers and the nearest duck.
        twin: file of the duck that the robot is compared with.

    Raises:
        ConfigError: it cannot be written to, or holds that duck, or a file so called that no replay left.
    """
    nearest = folder / TWIN_FILE
    try:
        made = not folder.exists()
        there = [folder / name for name in (GAP_FILE, PAGE_FILE, TWIN_FILE) if (folder / name).exists()]
        if twin is not None and nearest in there and nearest.samefile(twin):
            raise ConfigError(
                f"{nearest} is the duck to compare with and would be lost; choose another --out"
            )
    except OSError as error:
        raise ConfigError(f"cannot use {folder}: {error.strerror}; choose another --out") from error
    if there and not _is_gap(folder / GAP_FILE):
        raise ConfigError(f"{there[-1]} was left by no replay and would be lost; choose another --out")
    check_writable(folder)
    try:
        yield
    finally:
        if made and not any(folder.iterdir()):
            folder.rmdir()


def _is_gap(path: Path) -> bool:
    """Return whether a replay left a file."""
    try:
        data = read_bounded(path, MAX_GAP_BYTES, ConfigError)
        return parse_object(data, path.name, ConfigError).get("kind") == KIND
    except ConfigError:
        return False


def write(folder: Path, source: Source, log: Log, study: Study, verdict: Verdict) -> None:
    """Write the page, the numbers and the nearest duck.

    Raises:
        ConfigError: the files cannot be written there.
    """
    texts = {GAP_FILE: as_text(source, log, study, verdict), PAGE_FILE: page(source, log, study, verdict)}
    try:
        for name, text in texts.items():
            with replacing(folder / name) as temporary:
                temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"cannot write into {folder} ({error.strerror}); choose another with --out"
        ) from error
    save_twin(study.twin, folder / TWIN_FILE)
