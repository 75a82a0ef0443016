"""Makes and proves the artefact: one folder that holds a trained skill library and its contract."""
