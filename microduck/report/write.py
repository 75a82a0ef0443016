"""Writes a report's two files; what was there stays until each new one is whole."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hardware.errors import ConfigError
from hardware.files import replacing
from microduck.report import PAGE_FILE, REPORT_FILE
from microduck.report.document import Report, as_text
from microduck.report.page import Films, page


def check_writable(folder: Path) -> None:
    """Make a folder if need be, and refuse one that nothing can be written to, before hours of work.

    Raises:
        ConfigError: it cannot be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _cannot_write(folder, error) from error


def write_report(report: Report, films: Films, missing: str, folder: Path) -> None:
    """Write report.json and report.html.

    Args:
        report: what was measured.
        films: see `microduck.report.page.page`.
        missing: why there are no films.
        folder: where to.

    Raises:
        ConfigError: the files cannot be written there.
    """
    try:
        for name, text in ((REPORT_FILE, as_text(report)), (PAGE_FILE, page(report, films, missing))):
            with replacing(folder / name) as temporary:
                temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _cannot_write(folder, error) from error


def _cannot_write(folder: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot write a report into {folder} ({error.strerror}); choose another folder with --out"
    )
