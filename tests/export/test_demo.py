"""The last words of `microduck demo`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from export.cli import (
    app,  # noqa: F401  (before anything is replaced, since it keeps what it finds)
    demo,
    main,
)
from export.cli.demo import _Files
from firmware_bridge.cli.exits import EXIT_FALLEN, EXIT_FAULT, EXIT_OK

WALK = {"seconds": 1.3, "fell": False, "path_m": 0.06, "mean_speed_mps": 0.04, "heading_drift_deg": 1.0}
DRIVE = {"rate_hz": 50.0, "missed": 0, "ticks": 166, "cpu_share": 0.04}


@pytest.fixture
def drive_ending(monkeypatch, tmp_path):
    """Makes all parts of a demo stand-ins, of which `duck run` ends with a code."""
    files = _Files(tmp_path / "demo")

    def trained(run: Path, config: object) -> None:
        run.mkdir()
        (run / demo.PAGE_FILE).touch()

    def exported(run: Path, bundle: Path) -> None:
        bundle.mkdir()
        (bundle / "manifest.json").write_text('{"training": {"transitions": 49152, "seconds": 12.0}}')

    class Duck:
        def __init__(self, command: list[str]) -> None:
            files.port.touch()
            files.truth.write_text(json.dumps({"runs": [WALK]}))
            files.drive.write_text(json.dumps(DRIVE))

        def __enter__(self) -> Duck:
            return self

        def __exit__(self, *error: object) -> None: ...

        def terminate(self) -> None: ...

    class Done:
        def __init__(self, command: list[str], check: bool) -> None: ...

    monkeypatch.setattr(demo, "train", trained)
    monkeypatch.setattr(demo, "evaluate", lambda run: None)
    monkeypatch.setattr("export.cli.export.export", exported)
    monkeypatch.setattr(demo.subprocess, "Popen", Duck)
    monkeypatch.setattr(demo.subprocess, "run", Done)

    def end(code: int, *options: str) -> int:
        Done.returncode = code  # type: ignore[attr-defined]
        return main(["demo", "--folder", str(files.folder), *options])

    return end


@pytest.mark.parametrize(("given", "advised"), [(30_000, 5_000_000), (4_000_000, 8_000_000)])
def test_a_walker_that_tips_over_is_said_to_have_learned_too_little(drive_ending, capsys, given, advised):
    assert drive_ending(EXIT_FALLEN, "--transitions", str(given)) == 1
    said = capsys.readouterr()
    assert "1.3 s, then tipped over" in said.out
    last = said.err.splitlines()[-1]
    assert "learned too little" in last and last.endswith(f"--transitions {advised}")


def test_a_walk_to_the_end_needs_no_advice(drive_ending, capsys):
    assert drive_ending(EXIT_OK) == 0
    said = capsys.readouterr()
    assert "did not fall" in said.out and said.err == ""


def test_another_end_of_the_drive_is_told_by_its_exit_code(drive_ending, capsys):
    assert drive_ending(EXIT_FAULT) == 1
    assert "duck run ended with exit code 4; its last lines above say why" in capsys.readouterr().err
