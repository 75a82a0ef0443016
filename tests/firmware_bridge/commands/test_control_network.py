from __future__ import annotations

from pathlib import Path

import pytest

from firmware_bridge.control.network import Listen, listen_address, read_token
from hardware.errors import ConfigError

TOKEN = "correct-horse-battery"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return path


def test_a_token_is_read_from_a_file_that_is_the_owners_alone(file: Path) -> None:
    assert read_token(file) == TOKEN


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o601])
def test_a_token_that_others_may_read_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(ConfigError, match=f"others may read .*{mode:04o}.*chmod 600"):
        read_token(file)


@pytest.mark.parametrize("text", ["", "short", "two words of a token", "a" * 300, "ключ-к-утке-и-дому"])
def test_a_poor_token_is_refused(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError):
        read_token(file)


@pytest.mark.parametrize(
    ("line", "admitted"),
    [
        (b'{"token": "correct-horse-battery"}', True),
        (b'{"token": "correct-horse-batterz"}', False),
        (b'{"token": "correct-horse-battery "}', False),
        (b'{"token": ""}', False),
        (b'{"token": null}', False),
        (b'{"token": ["correct-horse-battery"]}', False),
        (b'{"token": "\\ud800"}', False),
        (b'{"op": "stop"}', False),
        (b"correct-horse-battery", False),
        (b"[" * 4000, False),
        (b"\xff", False),
    ],
)
def test_only_the_token_admits(line: bytes, admitted: bool) -> None:
    assert Listen("127.0.0.1", 9870, TOKEN).admits(line) is admitted


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:9870", "127.0.0.1", 9870), ("[::1]:1", "::1", 1), ("duck.local:65535", "duck.local", 65535)],
)
def test_an_address_is_split(text: str, host: str, port: int) -> None:
    assert listen_address(text) == (host, port)


@pytest.mark.parametrize("text", ["", "9870", ":9870", "host:", "host:0", "host:65536", "host:1e3", "host:²"])
def test_a_bad_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no HOST:PORT"):
        listen_address(text)
