"""The drive: read, decide, write, fifty times a second, and limp at every end."""
