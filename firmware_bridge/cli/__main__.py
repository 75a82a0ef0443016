"""Runs the `duck` command as `python -m firmware_bridge.cli`."""

import sys

from firmware_bridge.cli import main

if __name__ == "__main__":
    sys.exit(main())
