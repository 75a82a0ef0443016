"""A log as pictures: one file, a picture of everything or a page with a picture for each chapter."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firmware_bridge.recording import figures
from firmware_bridge.recording.log import Log
from firmware_bridge.recording.panels import bands, chapters
from firmware_bridge.recording.part import EVENTS
from hardware.errors import ConfigError
from hardware.files import replacing

ENDINGS = (".html", ".png", ".svg")
_STYLE = (
    "body{font-family:sans-serif;margin:2em;max-width:90em}img{width:100%}"
    "td{padding:0 1em 0 0;vertical-align:top}.problem{color:#b00}"
)
_TOLD = ("bundle", "layout", "p_gain", "action_scale", "skills", "started", "toolkit", "dropped")


def check_ending(path: Path) -> None:
    """Refuse a file whose ending is none of `ENDINGS`.

    Raises:
        ConfigError: it is not.
    """
    if path.suffix not in ENDINGS:
        raise ConfigError(f"cannot draw {path}: name a file that ends in one of {', '.join(ENDINGS)}")


def plot(log: Log, title: str, path: Path) -> None:
    """Draw a log; an older file stays until the new one is whole.

    Args:
        log: the log.
        title: what to call it on a page.
        path: `.html` for a page, `.png` or `.svg` for one picture.

    Raises:
        ConfigError: the ending is another, or matplotlib is not installed.
        OSError: the file cannot be written.
    """
    check_ending(path)
    if path.suffix == ".html":
        data = _page(log, title).encode("utf-8", "replace")  # a file's name may be no text
    else:
        panels = [panel for chapter in chapters(log).values() for panel in chapter]
        data = figures.encode(figures.draw(log, panels, bands(log)), path.suffix[1:])
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _page(log: Log, title: str) -> str:
    parts = [f"<h1>{html.escape(title)}</h1>"]
    if log.problem:
        parts.append(f'<p class="problem">{html.escape(log.problem)}</p>')
    length = f"{log.ticks} ticks, {log.seconds[-1]:.2f} s" if log.ticks else "no ticks"
    parts += [f"<p>{length}</p>", _table(_facts(log)), _table(_events(log))]
    for name, panels in chapters(log).items():
        picture = figures.encode(figures.draw(log, panels, bands(log)), "svg")
        source = f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"
        parts.append(f'<h2>{name}</h2>\n<img alt="{name}" src="{source}">')
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    body = "\n".join(parts)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _facts(log: Log) -> Iterator[tuple[str, ...]]:
    for key in _TOLD:
        if key in log.meta:
            value = log.meta[key]
            yield key, ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _events(log: Log) -> Iterator[tuple[str, ...]]:
    """Yield when, which mode and why for each change of it that the description tells properly."""
    begin = log.arrays["time"][0] if log.ticks else 0.0
    events: Any = log.meta.get(EVENTS)
    for event in events if isinstance(events, list) else ():
        time = event.get("time") if isinstance(event, dict) else None
        if isinstance(time, float):
            yield f"{time - begin:.2f} s", str(event.get("mode", "?")), str(event.get("reason", ""))


def _table(rows: Iterator[tuple[str, ...]]) -> str:
    lines = ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return "<table>" + "".join(lines) + "</table>"
