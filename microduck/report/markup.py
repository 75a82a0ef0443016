"""HTML that is put together from parts: whatever is not markup is escaped."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, *content: str, **attributes: str) -> Html:
    """Return an element; content that is no `Html` is escaped, and so are attributes.

    Args:
        name: of the element.
        content: what it holds.
        attributes: by name; a trailing underscore is dropped, so that `class_` may be given.
    """
    given = "".join(
        f' {key.rstrip("_")}="{html.escape(value, quote=True)}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{join(content)}</{name}>")


def join(parts: Iterable[str]) -> Html:
    """Return parts one after the other, escaped unless they are `Html`."""
    return Html("".join(part if isinstance(part, Html) else html.escape(part) for part in parts))


def data_url(kind: str, content: bytes) -> str:
    """Return an address that holds the content itself, of a media type such as `image/png`."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def picture(png: bytes, text: str) -> Html:
    """Return a picture with a text for those who cannot see it."""
    return Html(f'<img src="{data_url("image/png", png)}" alt="{html.escape(text, quote=True)}">')


def captioned(png: bytes, caption: str) -> Html:
    """Return a picture with its caption, which also stands for it."""
    return tag("figure", picture(png, caption), tag("figcaption", caption))


def film(mp4: bytes) -> Html:
    """Return a film that plays by itself, over and over, without a sound."""
    return Html(
        f'<video src="{data_url("video/mp4", mp4)}" autoplay loop muted playsinline controls></video>'
    )


Cell = str | tuple[str, str]
"""Content of a cell, with its class if it has one."""


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Html:
    """Return a table that scrolls sideways where it is too wide; the first cell of a row names the row."""
    top = tag("tr", *(tag("th", cell, scope="col") for cell in head))
    body = (tag("tr", _cell("th", first, scope="row"), *map(_data, rest)) for first, *rest in rows)
    return tag("div", tag("table", tag("thead", top), tag("tbody", *body)), class_="wide")


def _data(cell: Cell) -> Html:
    return _cell("td", cell)


def _cell(name: str, cell: Cell, **attributes: str) -> Html:
    if isinstance(cell, str):
        return tag(name, cell, **attributes)
    content, kind = cell
    return tag(name, content, class_=kind, **attributes)
