"""Ducks that differ from one another: ranges, and single ducks out of them as files."""

from microduck.randomization.plot import plot_randomized
from microduck.randomization.ranges import Randomization
from microduck.randomization.twin import Twin
from microduck.randomization.twin_file import load_twin, save_twin

__all__ = ["Randomization", "Twin", "load_twin", "plot_randomized", "save_twin"]
