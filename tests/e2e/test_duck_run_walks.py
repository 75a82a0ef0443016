"""The shipped policy, through `duck run`, real servo bytes and a real serial port, on a simulated body."""

import json
import subprocess
import sys
import time


def test_the_shipped_skill_walks_a_virtual_duck_without_falling(tmp_path):
    port, truth, drive = tmp_path / "port", tmp_path / "truth.json", tmp_path / "drive.json"
    duck = [sys.executable, "-m", "export.cli", "virtual-duck", "--link", str(port), "--report", str(truth)]
    settings = tmp_path / "duck.toml"
    settings.touch()  # the defaults, whatever this user's own are
    robot = [sys.executable, "-m", "firmware_bridge.cli", "run", "--port", str(port), "--report", str(drive)]
    robot += ["--config", str(settings), "--no-socket"]
    with subprocess.Popen(duck) as virtual:
        try:
            for _ in range(600):
                if port.exists() or virtual.poll() is not None:
                    break
                time.sleep(0.1)
            command = ["--command", "0.2", "0", "0", "--seconds", "5"]
            run = subprocess.run([*robot, *command], check=False, capture_output=True, text=True, timeout=90)
        finally:
            virtual.terminate()
    assert run.returncode == 0, run.stderr
    (walk,) = json.loads(truth.read_text())["runs"]
    assert not walk["fell"]
    assert walk["seconds"] > 4.8  # where it began to sit is told to a tenth or two
    assert walk["path_m"] > 0.5  # half of what was commanded
    told = json.loads(drive.read_text())
    assert told["mode"] == "stopped"
    assert told["policy_ticks"] >= 240
