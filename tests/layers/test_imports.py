"""The robot's packages import without the trainer's libraries, and nobody imports to the right."""

import subprocess
import sys
from pathlib import Path

TRAINER = ("torch", "tensordict", "torchrl", "mujoco", "onnx", "matplotlib", "rich", "tyro", "imageio")

IMPORT_ALL_WITHOUT = """
import importlib, pkgutil, sys

blocked, packages = sys.argv[1].split(","), sys.argv[2:]

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"{name} is not installed on the robot")

sys.meta_path.insert(0, Absent())
for package in packages:
    print(package)
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not module.name.endswith("__main__"):  # importing that one runs a command
            importlib.import_module(module.name)
            print(module.name)
"""


def python(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=root, capture_output=True, text=True, check=False)


def test_every_import_follows_the_layers(root: Path) -> None:
    command = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"
    done = python(root, "-c", command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


def test_robot_packages_import_without_the_trainers_libraries(root: Path) -> None:
    done = python(root, "-c", IMPORT_ALL_WITHOUT, ",".join(TRAINER), "hardware", "firmware_bridge")
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert {"hardware.contract", "firmware_bridge.skills.bundle", "firmware_bridge.cli"} <= imported


def test_blocking_a_library_does_stop_an_import_of_it(root: Path) -> None:
    done = python(root, "-c", IMPORT_ALL_WITHOUT, ",".join(TRAINER), "export")
    assert done.returncode != 0
    assert "is not installed on the robot" in done.stderr
