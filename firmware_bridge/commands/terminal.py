"""A terminal that gives keys as they are pressed, and is left as it was found."""

from __future__ import annotations

import atexit
import contextlib
import os
import termios

from hardware.errors import ConfigError

CONTROLLING = "/dev/tty"
"""The terminal a program was started from, also where its standard input is something else."""
READ_BYTES = 1024
_LOCAL, _CONTROL = 3, 6  # indices in the list that tcgetattr returns


class KeyTerminal:
    """A terminal without line editing and echo; Ctrl-C and the like stay signals.

    Closing restores it; so does the end of the program, whichever way that comes but SIGKILL.

    Args:
        path: the terminal.

    Raises:
        ConfigError: there is none, or this program is in its background.
    """

    def __init__(self, path: str = CONTROLLING) -> None:
        # A file description of its own: not blocking on it leaves the standard streams as they are.
        flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            self._descriptor = os.open(path, flags)
        except OSError as error:
            raise ConfigError(
                f"no terminal to read keys from ({error.strerror}); run it in one, over ssh with `ssh -t`"
            ) from error
        try:
            self._take_over()
        except (termios.error, ConfigError) as error:
            os.close(self._descriptor)
            raise ConfigError(f"cannot read keys from {path}: {error}") from error
        atexit.register(self.close)

    def read(self) -> bytes | None:
        """Return what was typed since the last call, None when the terminal is gone; never waits."""
        try:
            return os.read(self._descriptor, READ_BYTES) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    def write(self, data: bytes) -> None:
        """Send a few bytes to the terminal; one that is stuck or gone does not get them."""
        with contextlib.suppress(OSError):  # `read` notices that nothing comes back
            os.write(self._descriptor, data)

    def fileno(self) -> int:
        """Return the terminal's file descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Make the terminal what it was, and forget what was typed meanwhile; never waits."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        atexit.unregister(self.close)
        with contextlib.suppress(termios.error):  # a terminal that is gone needs nothing restored
            termios.tcflush(descriptor, termios.TCIFLUSH)
            termios.tcsetattr(descriptor, termios.TCSANOW, self._before)
        os.close(descriptor)

    def _take_over(self) -> None:
        if _in_background(self._descriptor):
            raise ConfigError("this program is in the background; bring it to the foreground")
        self._before = termios.tcgetattr(self._descriptor)
        mode = termios.tcgetattr(self._descriptor)
        mode[_LOCAL] &= ~(termios.ICANON | termios.ECHO)
        mode[_CONTROL][termios.VMIN], mode[_CONTROL][termios.VTIME] = 1, 0
        termios.tcsetattr(self._descriptor, termios.TCSANOW, mode)


def _in_background(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) != os.getpgrp()
    except OSError:  # not this program's own terminal, which has no such notion
        return False
