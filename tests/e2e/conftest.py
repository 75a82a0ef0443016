"""A drive of the real `duck run` over a serial port, on a virtual duck that tells what became of it."""

import json
import subprocess
import sys
import time

import pytest


@pytest.fixture
def driven(tmp_path):
    """Drive for 5 s with arguments of `duck run`; return what the virtual duck and the drive report."""

    def drive(*arguments):
        port, truth, told = tmp_path / "port", tmp_path / "truth.json", tmp_path / "drive.json"
        duck = [
            sys.executable,
            "-m",
            "export.cli",
            "virtual-duck",
            "--link",
            str(port),
            "--report",
            str(truth),
        ]
        settings = tmp_path / "duck.toml"
        settings.touch()  # the defaults, whatever this user's own are
        robot = [sys.executable, "-m", "firmware_bridge.cli", "run", *arguments, "--port", str(port)]
        robot += ["--report", str(told), "--config", str(settings), "--no-socket", "--seconds", "5"]
        with subprocess.Popen(duck) as virtual:
            try:
                for _ in range(600):
                    if port.exists() or virtual.poll() is not None:
                        break
                    time.sleep(0.1)
                run = subprocess.run(robot, check=False, capture_output=True, text=True, timeout=90)
            finally:
                virtual.terminate()
        assert run.returncode == 0, run.stderr
        (walk,) = json.loads(truth.read_text())["runs"]
        return walk, json.loads(told.read_text())

    return drive
