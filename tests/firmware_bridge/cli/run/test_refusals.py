"""What `duck run` refuses before anything moves, in one clear line; and `duck skills`, which checks alike."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from firmware_bridge.cli import main
from firmware_bridge.skills.bundle import load_bundle
from hardware.errors import BundleError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without settings of a robot, where the control socket is as well."""
    for name in ("HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("MICRODUCK_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "typo.toml": "[bus]\n\nprot = 'auto'\n",
        "fast.toml": "[bus]\nbaud = 12\n",
        "lost.toml": "[calibration]\nfile = 'gone.toml'\n",
        "bad.script": "0 walk 0 0 0\n1 walk 9 0 0\n2 end\n",
        "open.token": "a" * 20,
        "short.token": "abc",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "short.token").chmod(0o600)
    (tmp_path / "open.token").chmod(0o644)
    (tmp_path / "folder").mkdir()
    (tmp_path / "to-a").symlink_to("a.tdz")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "/dev/no-duck does not exist"),
        (("--port", ""), "port is ''; name a device"),
        (("--port", "folder"), "folder is not a serial port"),
        (("--skill", "fly"), "no skill 'fly'; choose one of ['stand', 'walk']"),
        (("--command", "0.4", "0", "0"), "command vx = 0.4 is outside [-0.1, 0.3]"),
        (("--command", "0.1", "0", "nan"), "command yaw_rate = nan is outside [-0.5, 0.5]"),
        (("--calibration", "none.toml"), "none.toml is not a file; check the path"),
        (("--calibration", "fast.toml"), "fast.toml is no valid calibration"),
        (("--config", "none.toml"), "none.toml is not a file; check the path"),
        (("--config", "folder"), "folder is not a file; check the path"),
        (
            ("--config", "typo.toml"),
            "typo.toml, line 3: unknown key 'prot' in [bus]; valid keys are port, baud",
        ),
        (("--config", "fast.toml"), "fast.toml, line 2: [bus] baud is 12"),
        (("--config", "lost.toml"), "gone.toml is not a file"),
        (("--wait", "90000"), "wait_s is 90000 s; it must be in [0, 86400]"),
        (("--report", "no/folder/s.json"), "there is no folder no/folder"),
        (("--report", "folder"), "cannot write folder: it is a folder"),
        (("--report", "a.tdz", "--record", "a.tdz"), "cannot write a.tdz: that is a recording's name"),
        (("--report", "folder/../a.tdz.part", "--record", "a.tdz"), "a.tdz.part: that is a recording's name"),
        (("--report", "to-a", "--record", "a.tdz"), "cannot write to-a: that is a recording's name"),
        (("--report", "loop"), "cannot write loop: Too many levels of symbolic links; choose another file"),
        (("--report", "a" * 256), "File name too long; choose another file"),
        (("--record", "a" * 300 + ".tdz"), ".tdz.part: File name too long; choose another file"),
        (("--record", "a" * 247 + ".tdz"), ".tdz.part: File name too long; choose another file"),
        (("--record", "no/folder/a.tdz"), "there is no folder no/folder; make it"),
        (("--record", "loop/a.tdz"), "there is no folder loop; make it"),
        (("--report", "old.tdz"), "cannot write old.tdz: that is a recording's name"),
        (("--script", "none.script"), "none.script is not a file"),
        (("--script", "bad.script"), "bad.script, line 2: command vx = 9"),
        (("--gamepad",), "install `microduck-toolkit[gamepad]`"),
        (("--listen", "0.0.0.0:9870"), "--listen HOST:PORT and --token FILE need each other"),
        (("--token", "short.token"), "--listen HOST:PORT and --token FILE need each other"),
        (("--listen", "robot", "--token", "short.token"), "'robot' is no HOST:PORT"),
        (("--listen", "0.0.0.0:9870", "--token", "short.token"), "must hold one word of 16 to 256"),
        (("--listen", "0.0.0.0:9870", "--token", "open.token"), "others may read open.token, mode 0644"),
        (("--listen", "0.0.0.0:9870", "--token", "none"), "none is not a file"),
        (("--remote", "--no-socket"), "--no-socket leaves --remote and --listen without what they need"),
        (("--socket", "typo.toml/duck.sock"), "cannot make the control socket typo.toml/duck.sock"),
        (("--socket", "folder"), "folder is no socket; remove it"),
    ],
)
def test_a_refusal_is_one_clear_line_before_the_port_is_opened(
    bundle_folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.setitem(sys.modules, "evdev", None)  # as where it is not installed
    port = () if "--port" in arguments else ("--port", "/dev/no-duck")
    assert main(["run", str(bundle_folder), *port, *arguments]) == 1
    seen = capsys.readouterr()
    assert message in seen.err and seen.err.startswith("duck: ")
    assert seen.out == "" and seen.err.count("\n") == 1


def test_a_bundle_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for name, message in (("none", "none is not a folder"), ("folder", "folder is no skill bundle")):
        for command in (["run", name, "--port", "/dev/no-duck"], ["skills", name]):
            assert main(command) == 1
            assert message in capsys.readouterr().err


def test_debug_shows_where_an_error_came_from(bundle_folder: Path) -> None:
    with pytest.raises(BundleError):
        main(["run", str(bundle_folder), "--port", "/dev/no-duck", "--skill", "fly", "--debug"])


def test_the_duck_is_looked_for_on_every_port_unless_one_is_named(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("firmware_bridge.wire.port.candidates", lambda: ["/dev/no-duck"])
    assert main(["run", str(bundle_folder), "--wait", "0"]) == 1
    assert "no duck answers at 1000000 baud (/dev/no-duck: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--seconds", "0"),
        ("--seconds", "inf"),
        ("--seconds", "soon"),
        ("--wait", "-1"),
        ("--wait", "nan"),
        ("--command", "1", "2"),
        ("--command", "a", "b", "c"),
        ("--stdin", "--command", "0", "0", "0"),
        ("--keyboard", "--remote"),
        ("--socket", "a", "--no-socket"),
        ("--fast",),
        ("a", "b"),
    ],
)
def test_a_command_line_that_is_not_valid_exits_with_2(
    bundle_folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", str(bundle_folder), "--port", "/dev/no-duck", *arguments])
    assert end.value.code == 2
    assert "usage: duck run" in capsys.readouterr().err


def test_skills_lists_boxes_and_clocks(bundle_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skills", str(bundle_folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "layout sensor" in lines[0] and "P gain 200" in lines[0]
    assert " ".join(lines[2].split()) == "walk -0.1 to 0.3 0 to 0 -0.5 to 0.5 1.5 +1 per m/s"


def test_the_bundle_in_the_package_is_meant_when_none_is_named(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("firmware_bridge.skills.bundle.shipped_bundle", lambda: bundle_folder)
    assert main(["skills"]) == 0
    assert str(bundle_folder) in capsys.readouterr().out
    assert list(load_bundle(bundle_folder).skills) == ["walk", "stand"]
