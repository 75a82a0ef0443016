"""The base install has ready-made libraries for a 64-bit Raspberry Pi, and is small."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLIBC_OF_BOOKWORM = 36
"""Second number of the C library of the oldest Raspberry Pi OS that is supported."""
MOST_BYTES = 150e6
HANG_S = 600
"""Time after which the package index is given up [s]."""
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "1")


def requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["dependencies"])


def platforms() -> list[str]:
    newest_first = range(GLIBC_OF_BOOKWORM, 16, -1)
    names = [*(f"manylinux_2_{minor}_aarch64" for minor in newest_first), "manylinux2014_aarch64"]
    return [word for name in names for word in ("--platform", name)]


def start(*words: str) -> subprocess.Popen[str]:
    command = [*PIP, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def start_choosing(python: str, *words: str) -> subprocess.Popen[str]:
    """Let pip choose the base install's wheels for a Pi's Python, and nothing but wheels."""
    target = [*platforms(), "--python-version", python, "--implementation", "cp", "--only-binary=:all:"]
    constraint = ["--constraint", str(ROOT / "constraints.txt")]
    return start(*words, "--quiet", *target, *constraint, *requirements())


def unpacked_size(wheels: list[Path]) -> int:
    return sum(member.file_size for wheel in wheels for member in zipfile.ZipFile(wheel).infolist())


def test_base_install_has_wheels_for_every_python_of_a_pi_and_stays_small(tmp_path: Path) -> None:
    """All at once, since nearly all of the time is the index's."""
    wheels = tmp_path / "wheels"
    probe = start("download", "--quiet", "--no-deps", "--dest", str(tmp_path / "probe"), "array-api-compat")
    choices = {"3.11": start_choosing("3.11", "download", "--dest", str(wheels))}
    for python in ("3.12", "3.13"):
        unused = ["--target", str(tmp_path / "unused")]  # pip wants a folder for another platform's wheels
        choices[python] = start_choosing(python, "install", "--dry-run", "--ignore-installed", *unused)
    failed = {python: said for python, pip in choices.items() if (said := error_of(pip))}
    if error_of(probe):
        pytest.skip("no package index answers")
    assert failed == {}
    own = [ROOT / name for name in ("hardware", "firmware_bridge", "microduck", "export")]
    size = unpacked_size([*wheels.glob("*.whl")]) + sum(map(size_of, own))
    assert 20e6 < size < MOST_BYTES, f"{size / 1e6:.1f} MB"


def error_of(pip: subprocess.Popen[str]) -> str:
    """Wait for a pip and return why it failed, nothing if it did not."""
    _, said = pip.communicate(timeout=HANG_S)
    return (said or "no reason given") if pip.returncode else ""


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.suffix not in {"", ".pyc"})
