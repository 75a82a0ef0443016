from pathlib import Path

import pytest

# Never part of the sources: version control, environments, caches and what commands leave behind.
_LEFT_OUT = {"build", "dist", "runs", "__pycache__", "MUJOCO_LOG.TXT"}


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's folder."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def sources(root: Path) -> list[Path]:
    """Every file of the repository that a person wrote."""

    def walk(folder: Path) -> list[Path]:
        found: list[Path] = []
        for path in sorted(folder.iterdir()):
            hidden = path.name.startswith(".") and path.name not in {".ci", ".gitignore"}
            if hidden or path.name in _LEFT_OUT or path.name.endswith(".egg-info"):
                continue
            found += walk(path) if path.is_dir() else [path]
        return found

    return walk(root)
