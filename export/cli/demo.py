"""`microduck demo`: from nothing to a duck that walks over a servo bus."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firmware_bridge.cli.exits import EXIT_FALLEN, EXIT_OK
from hardware.errors import BusError, DuckError
from microduck.cli.console import console
from microduck.cli.evaluate import evaluate
from microduck.cli.train import train
from microduck.learning.config import TrainConfig
from microduck.report import PAGE_FILE

ENOUGH = 5_000_000
"""Transitions after which a walker walks: the README's figures are of so many."""
MOST_MINUTES = 120.0
"""Training time after which the demo goes on with what it has [min]."""
PORT_WAIT_S = 60.0
"""Time for the virtual duck's port to appear [s]; loading torch on a busy machine takes a while."""


@dataclass(frozen=True)
class _Files:
    """Where the demo leaves what it makes."""

    folder: Path

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def bundle(self) -> Path:
        return self.folder / "bundle"

    @property
    def port(self) -> Path:
        return self.folder / "duck-port"

    @property
    def settings(self) -> Path:
        return self.folder / "duck.toml"

    @property
    def truth(self) -> Path:
        return self.folder / "virtual-duck.json"

    @property
    def video(self) -> Path:
        return self.folder / "walk.mp4"

    @property
    def drive(self) -> Path:
        return self.folder / "duck-run.json"


def demo(
    folder: Path = Path("runs/demo"), transitions: int = ENOUGH, seconds: float = 10.0, seed: int = 0
) -> None:
    """Train a walker, evaluate and export it, and let `duck run` walk it on a virtual duck.

    Args:
        folder: where everything goes; an earlier demo there is moved aside.
        transitions: length of the training, in control steps over all ducks.
        seconds: walk on the virtual duck [s].
        seed: seed of the training.
    """
    from export.cli.export import export

    files = _Files(folder)
    _move_aside(folder)
    folder.mkdir(parents=True)
    console.rule("1 of 4: train")
    # Counted in transitions, so that a slow machine trains the same walker, only longer.
    train(files.run, TrainConfig(minutes=MOST_MINUTES, transitions=transitions, seed=seed))
    console.rule("2 of 4: evaluate")
    evaluate(files.run)
    shutil.copy(files.run / PAGE_FILE, folder / PAGE_FILE)
    console.rule("3 of 4: export")
    export(files.run, files.bundle)
    console.rule("4 of 4: duck run, on a virtual duck")
    fell = _drive(files, seconds)
    console.print(_table(files, fell))
    if fell:
        raise DuckError(
            f"the walker tipped over, as one does that has learned too little; {files.video} shows it. "
            f"Train longer: microduck demo --folder {folder} --transitions {max(ENOUGH, 2 * transitions)}"
        )


def _move_aside(folder: Path) -> None:
    """Keep an earlier demo under another name."""
    if folder.exists():
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(folder.stat().st_mtime))
        aside = folder.with_name(f"{folder.name}-{stamp}")
        folder.rename(aside)
        console.print(f"the earlier demo is now in {aside}")


def _drive(files: _Files, seconds: float) -> bool:
    """Run the robot's own program against a virtual duck, each in its process, with a serial port between.

    Returns:
        Whether the duck fell, or was let go because it was about to.
    """
    duck = [sys.executable, "-m", "export.cli", "virtual-duck", "--link", str(files.port)]
    files.settings.write_text("# The defaults: what this user's own duck needs is no matter here.\n")
    robot = [sys.executable, "-m", "firmware_bridge.cli", "run", str(files.bundle), "--port", str(files.port)]
    robot += ["--config", str(files.settings), "--no-socket"]
    command = ["--command", "0.2", "0", "0", "--seconds", str(seconds), "--report", str(files.drive)]
    with subprocess.Popen([*duck, "--report", str(files.truth), "--video", str(files.video)]) as virtual:
        try:
            _wait_for(files.port, virtual)
            code = subprocess.run([*robot, *command], check=False).returncode
        finally:
            virtual.terminate()
    if code not in (EXIT_OK, EXIT_FALLEN):
        raise DuckError(f"duck run ended with exit code {code}; its last lines above say why")
    return code == EXIT_FALLEN


def _wait_for(port: Path, virtual: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PORT_WAIT_S
    while not port.exists():
        if virtual.poll() is not None or time.monotonic() > until:
            raise BusError(f"the virtual duck made no port within {PORT_WAIT_S:g} s; see its messages above")
        time.sleep(0.1)


def _table(files: _Files, fell: bool) -> Any:
    from rich.table import Table

    truth, drive = (json.loads(path.read_text(encoding="utf-8")) for path in (files.truth, files.drive))
    walk = truth["runs"][-1]
    run = json.loads((files.bundle / "manifest.json").read_text(encoding="utf-8"))["training"]
    out = Table(title="what happened", show_header=False)
    rows = {
        "trained": f"{run['transitions']:,} transitions in {run['seconds'] / 60:.1f} min",
        "walked": f"{walk['seconds']:.1f} s, {'then tipped over' if fell else 'did not fall'}",
        "path": f"{walk['path_m']:.2f} m at {walk['mean_speed_mps']:.3f} m/s (0.2 m/s commanded)",
        "heading drift": f"{walk['heading_drift_deg']:+.0f} deg",
        "loop": f"{drive['rate_hz']:.2f} Hz, {drive['missed']} of {drive['ticks']} ticks missed",
        "runtime": f"{drive['cpu_share']:.1%} of one core",
        "files": f"{files.folder}: {PAGE_FILE}, walk.mp4, bundle/, run/",
    }
    for name, text in rows.items():
        out.add_row(name, text)
    return out
