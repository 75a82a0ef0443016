from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from firmware_bridge.control.path import SocketClaim, running_socket, socket_places
from hardware.errors import ControlError

HOLD = (
    "import sys, time; from pathlib import Path; from firmware_bridge.control.path import SocketClaim\n"
    "import socket\n"
    "with SocketClaim(Path(sys.argv[1])):\n"
    "    s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n"
    "    print('mine', flush=True); time.sleep(600)\n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "duck.sock"


def test_a_path_with_a_living_owner_is_refused_naming_it_and_free_once_it_was_killed(path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    try:
        assert owner.stdout.readline() == b"mine\n"
        with pytest.raises(ControlError, match=rf"another drive runs, process {owner.pid}; end it by"):
            SocketClaim(path).__enter__()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert path.exists()
        with SocketClaim(path):
            assert not path.exists()
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()


def test_in_one_process_too_there_is_one_owner(path: Path) -> None:
    with SocketClaim(path), pytest.raises(ControlError, match=f"process {os.getpid()}"):
        SocketClaim(path).__enter__()
    with SocketClaim(path):
        pass


def test_the_folder_is_made_for_this_user_alone(path: Path) -> None:
    with SocketClaim(path):
        assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_folder_in_which_others_may_write_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o777)
    with pytest.raises(ControlError, match="others may write"):
        SocketClaim(path).__enter__()


def test_a_file_that_is_no_socket_is_not_removed(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text("a diary")
    with pytest.raises(ControlError, match="is no socket"):
        SocketClaim(path).__enter__()
    assert path.read_text() == "a diary"


def test_a_place_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ControlError, match="cannot make the control socket"):
        SocketClaim(tmp_path / "file" / "duck.sock").__enter__()


def test_a_client_finds_a_drive_that_runs_outside_of_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    session = tmp_path / "session"
    session.mkdir()
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    (service,) = socket_places()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(session))
    assert socket_places() == (session / "microduck" / "duck.sock", service)
    assert running_socket() == socket_places()[0]
    service.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(service))
        assert running_socket() == service
