"""Where commands come from, each with its age, so that a silent sender can be noticed."""

from firmware_bridge.commands.fixed import FixedCommand
from firmware_bridge.commands.lines import LineCommands
from firmware_bridge.commands.request import CommandSource, Event, Request

__all__ = ["CommandSource", "Event", "FixedCommand", "LineCommands", "Request"]
