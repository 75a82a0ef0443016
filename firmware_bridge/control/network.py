"""The control socket over a network: only when asked for, and only with a token."""

from __future__ import annotations

import hmac
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from hardware.errors import ConfigError
from hardware.files import read_bounded

MIN_TOKEN, MAX_TOKEN = 16, 256
"""Bounds of a token's length [characters]."""


@dataclass(frozen=True)
class Listen:
    """Where to listen, and what a connection must know.

    Attributes:
        host: address or name of this machine.
        port: TCP port.
        token: the secret.
    """

    host: str
    port: int
    token: str

    def admits(self, line: bytes) -> bool:
        """Return whether the first line of a connection is `{"token": ...}` with the right one."""
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            return False
        token = given.get("token") if isinstance(given, dict) else None
        # Takes as long for a token that is nearly right as for any other.
        return isinstance(token, str) and hmac.compare_digest(
            token.encode("utf-8", "replace"), self.token.encode()
        )


def listen_address(text: str) -> tuple[str, int]:
    """Split `HOST:PORT`; an IPv6 address stands in brackets.

    Raises:
        ConfigError: it is no such thing.
    """
    host, colon, port = text.rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() and len(port) < 6 else 0
    if not (host and colon and 1 <= number <= 65535):
        raise ConfigError(f"{text!r} is no HOST:PORT; write for example 192.168.1.20:9870 or [::1]:9870")
    return host.removeprefix("[").removesuffix("]"), number


def read_token(path: Path) -> str:
    """Read the token from a file that only its owner may read.

    Raises:
        ConfigError: the file is absent, another may read it, or it holds no token.
    """
    text = read_bounded(path, MAX_TOKEN + 2, ConfigError).decode("ascii", "replace").strip()
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077 or path.stat().st_uid != os.getuid():
        raise ConfigError(f"others may read {path}, mode {mode:04o}; make it yours alone: `chmod 600 {path}`")
    if len(text) < MIN_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(
            f"{path} must hold one word of {MIN_TOKEN} to {MAX_TOKEN} ASCII characters; make one by "
            f"`(umask 077; head -c 24 /dev/urandom | base64 > {path})`"
        )
    return text
