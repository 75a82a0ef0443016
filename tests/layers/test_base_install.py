"""`pip install .` without extras is enough for the robot."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def base_install(root: Path, sources: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs' folder of a new environment that holds this project and its base dependencies."""
    folder = tmp_path_factory.mktemp("base")
    for path in sources:  # from a copy: building leaves files beside the sources
        copy = folder / "source" / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    programs = folder / "venv" / "bin"
    install = [programs / "python", "-m", "pip", "install", "-q", "-c", "constraints.txt", "."]
    done = subprocess.run(install, cwd=folder / "source", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return programs


def run(*command: str | Path) -> str:
    # Away from the sources, so that only what was installed can be imported.
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_duck_command_works_without_the_trainers_libraries(base_install: Path) -> None:
    assert "run" in run(base_install / "duck", "--help")
    listed = run(base_install / "python", "-m", "pip", "list", "--format=freeze")
    installed = {line.partition("==")[0].lower() for line in listed.split()}
    assert {"microduck-toolkit", "numpy", "onnxruntime", "pyserial"} <= installed
    assert not installed & {"torch", "tensordict", "torchrl", "mujoco", "onnx", "matplotlib", "rich", "tyro"}


def test_files_the_packages_need_are_installed_with_them(base_install: Path, root: Path) -> None:
    show = "from importlib.resources import files; print(files('hardware').joinpath('duck.xml').read_text())"
    shown = run(base_install / "python", "-c", show)
    assert shown.strip() == (root / "hardware" / "duck.xml").read_text().strip()
