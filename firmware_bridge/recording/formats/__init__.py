"""One module for each format; its `writer()` returns what writes a log, after looking for its package."""
