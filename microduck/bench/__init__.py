"""How fast everything is, as ratios within one run."""
