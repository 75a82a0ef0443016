"""Parquet: typed columns, each with its unit in its metadata, for pandas, polars, DuckDB and the like."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from firmware_bridge.recording.columns import NAMED, columns
from firmware_bridge.recording.extras import extra
from firmware_bridge.recording.log import Log


def writer() -> Callable[[Log, Path], None]:
    """Return what writes a log.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    arrow, parquet = extra("pyarrow", "parquet"), extra("pyarrow.parquet", "parquet")

    def write(log: Log, path: Path) -> None:
        table = columns(log)
        arrays = [arrow.array(column.values(log)) for column in table]
        arrays = [
            array.dictionary_encode() if column.field.name in NAMED else array
            for column, array in zip(table, arrays, strict=True)
        ]
        fields = [
            arrow.field(column.name, array.type, metadata={"unit": column.unit, "text": column.field.text})
            for column, array in zip(table, arrays, strict=True)
        ]
        schema = arrow.schema(fields, metadata={"microduck": json.dumps(log.meta)})
        with path.open("wb") as file:  # a name that is no text is none for arrow
            parquet.write_table(arrow.table(arrays, schema=schema), file)

    return write
