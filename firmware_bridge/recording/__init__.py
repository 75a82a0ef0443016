"""Recordings: every tick of a drive in one file, written off the loop, read strictly, drawn and converted."""

from firmware_bridge.recording.log import Log, read_log, write_log

__all__ = ["Log", "read_log", "write_log"]
