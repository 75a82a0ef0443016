"""Aligned columns of text."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return a line for each row, with columns as wide as their widest entry.

    Args:
        rows: entries, of equal number in each row.
        right: columns to align at the right, as numbers read best.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{text:>{width}}" if index in right else f"{text:<{width}}"
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
