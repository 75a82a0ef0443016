"""Learning in pieces a test can call: collect, estimate advantages, update, checkpoint, evaluate."""
