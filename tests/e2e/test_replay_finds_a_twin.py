"""A late duck on a serial port is driven, recorded and replayed: the replay says how late it is."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest

from firmware_bridge.recording import read_log
from microduck.randomization import Twin, load_twin, save_twin

DELAY_S = 0.02
BUSY = 0.02
"""Part of the ticks that a machine may miss and still play a duck in real time."""


def toolkit(module, *arguments):
    return [sys.executable, "-m", module, *map(str, arguments)]


def test_the_delay_of_a_recorded_twin_is_found(tmp_path):
    port, log, out = tmp_path / "port", tmp_path / "walk.tdz", tmp_path / "gap"
    settings, twin = tmp_path / "duck.toml", tmp_path / "late.toml"
    settings.touch()  # the defaults, whatever this user's own are
    save_twin(Twin(delay=DELAY_S), twin)
    with subprocess.Popen(toolkit("export.cli", "virtual-duck", "--link", port, "--twin", twin)) as virtual:
        try:
            for _ in range(600):
                if port.exists() or virtual.poll() is not None:
                    break
                time.sleep(0.1)
            drive = toolkit("firmware_bridge.cli", "run", "--port", port, "--config", settings, "--no-socket")
            drive += ["--command", "0.2", "0", "0", "--seconds", "8", "--record", str(log)]
            subprocess.run(drive, check=False, capture_output=True, timeout=90)
        finally:
            virtual.terminate()
    if np.mean(read_log(log).arrays["periods"] > 1) > BUSY:
        pytest.skip("this machine is too busy to play a duck in real time")
    replay = toolkit("export.cli", "replay", log, "--out", out, "--actuator", "xl330")
    done = subprocess.run(replay, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads((out / "gap.json").read_text())
    assert told["causes"][0]["parameter"] == "delay"
    # A virtual duck looks at its goals once in 5 ms, and tells where it was up to 5 ms ago.
    assert DELAY_S - 0.003 < told["causes"][0]["value"] < DELAY_S + 0.01
    assert load_twin(out / "twin.toml").delay == pytest.approx(told["causes"][0]["value"], abs=1e-4)
