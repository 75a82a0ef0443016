"""Rerun: a scalar for each number of a tick at the path `position/left_knee`, on the timeline `time`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from firmware_bridge.recording.columns import NAMED, columns
from firmware_bridge.recording.extras import extra
from firmware_bridge.recording.log import Log
from firmware_bridge.recording.times import tick_nanoseconds
from hardware.errors import ConfigError


def writer() -> Callable[[Log, Path], None]:
    """Return what writes a log.

    Raises:
        ConfigError: rerun-sdk is not installed.
    """
    rerun = extra("rerun", "rerun")

    def write(log: Log, path: Path) -> None:
        stream = rerun.RecordingStream("microduck", recording_id=str(log.meta.get("started", path.stem)))
        try:
            stream.save(path)
            _send(log, rerun, stream)
            stream.flush()
            stream.disconnect()
        except UnicodeEncodeError as error:
            raise ConfigError("Rerun takes only names that are UTF-8; choose another for the file") from error
        except RuntimeError as error:  # all it has for a full disk
            raise ConfigError(f"Rerun did not write all of it: {error}; look for room on the disk") from error

    return write


def _send(log: Log, rerun: Any, stream: Any) -> None:
    nanoseconds = tick_nanoseconds(log).astype("datetime64[ns]")
    time = rerun.TimeColumn("time", timestamp=nanoseconds)
    for column in columns(log):
        values = column.values(log)
        entity = column.name.replace(".", "/")
        if column.field.name in NAMED:
            changed = np.concatenate([[True], values[1:] != values[:-1]])[: log.ticks]
            when = rerun.TimeColumn("time", timestamp=nanoseconds[changed])
            stream.send_columns(entity, [when], rerun.TextLog.columns(text=values[changed].tolist()))
        elif column.field.name != "time":
            stream.send_columns(entity, [time], rerun.Scalars.columns(scalars=values.astype(np.float64)))
