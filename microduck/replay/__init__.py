"""Replay: a recording's targets in the simulator, the gap between the two ducks, and its likely cause."""

PAGE_FILE, GAP_FILE, TWIN_FILE = "gap.html", "gap.json", "twin.toml"
"""What a replay leaves: a page for people, the same for programs, and the duck that comes nearest."""
