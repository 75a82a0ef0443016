"""The control socket: other programs command a drive, stop it and watch it."""
