"""`microduck replay`: where its files go, what it never writes over, and what it leaves where it fails."""

import json
import os

import numpy as np
import pytest

from firmware_bridge.recording import write_log
from hardware.errors import ArchiveError, ConfigError
from microduck.cli.replay import replay
from microduck.replay import GAP_FILE, PAGE_FILE, TWIN_FILE, study


@pytest.fixture(scope="module")
def any_study(made_log):
    """What comes out of a duck that says it stands like a rock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("microduck.replay.search.MOST_CAUSES", 1)
        return study.study(made_log(125), study.ReplayOptions("position"), lambda done, text: None)


@pytest.fixture
def quick(any_study, monkeypatch):
    """Spares the search and the pictures where only files matter."""
    monkeypatch.setattr(study, "study", lambda log, options, progress: any_study)
    monkeypatch.setattr("microduck.replay.write.page", lambda *about: "a page")


@pytest.fixture
def standing(made_log, tmp_path, monkeypatch):
    """Writes a log of two and a half seconds of standing, or of what differs, under a name."""
    monkeypatch.chdir(tmp_path)

    def write(name, **changes):
        log = made_log(125, **changes)
        write_log(tmp_path / name, log.arrays, log.meta)
        return tmp_path / name

    return write


def names(folder):
    return sorted(os.fsencode(path.name) for path in folder.iterdir())


@pytest.mark.usefixtures("quick")
def test_a_twin_that_a_replay_left_is_never_written_over(standing, tmp_path):
    log = standing("walk.tdz")
    replay(log, actuator="position")
    twin = tmp_path / "walk-gap" / TWIN_FILE
    first = {path.name: path.read_bytes() for path in twin.parent.iterdir()}
    replay(log, twin=twin)
    assert sorted(first) == sorted((GAP_FILE, PAGE_FILE, TWIN_FILE))
    assert {path.name: path.read_bytes() for path in twin.parent.iterdir()} == first
    assert (tmp_path / "walk-gap-twin" / PAGE_FILE).exists()
    with pytest.raises(ConfigError, match=r"is the duck to compare with .* choose another --out"):
        replay(log, twin=tmp_path / "walk-gap-twin" / TWIN_FILE)
    with pytest.raises(ConfigError, match="is the duck to compare with"):
        replay(log, out=twin.parent, twin=twin)
    assert {path.name: path.read_bytes() for path in twin.parent.iterdir()} == first


def test_a_twin_that_a_user_made_is_never_written_over(standing, tmp_path):
    log = standing("walk.tdz")
    (tmp_path / TWIN_FILE).write_text("mine")
    with pytest.raises(ConfigError, match="was left by no replay"):
        replay(log, out=tmp_path)
    assert (tmp_path / TWIN_FILE).read_text() == "mine"


@pytest.mark.usefixtures("quick")
def test_every_log_has_a_folder_of_its_own_whatever_its_name(standing, tmp_path):
    replay(standing("walk.1.tdz"), actuator="position")
    replay(standing("walk.2.tdz"), actuator="position")
    odd = standing(os.fsdecode(b"w\xffalk[bold].tdz"))
    replay(odd, actuator="position")
    folders = [b"w\xffalk[bold]-gap", b"walk.1-gap", b"walk.2-gap"]
    assert [name for name in names(tmp_path) if not name.endswith(b".tdz")] == sorted(folders)
    told = json.loads((tmp_path / os.fsdecode(folders[0]) / GAP_FILE).read_text())
    assert told["log"] == r"w\udcffalk[bold].tdz"


def test_a_log_that_cannot_be_replayed_leaves_no_folder(standing, tmp_path):
    log = standing("walk.tdz", fresh=np.zeros(125))
    with pytest.raises(ArchiveError, match="fresh measurement"):
        replay(log)
    assert names(tmp_path) == [b"walk.tdz"]


def test_a_duck_that_bursts_in_the_simulator_leaves_numbers_and_no_log_of_mujocos(standing, tmp_path):
    signs = np.sign(np.random.default_rng(1).normal(size=(4, 125, 14)))
    wild = {
        "position": 6.2 * signs[0],
        "applied": 6.2 * signs[1],
        "velocity": 99 * signs[2],
        "angular_velocity": 99 * signs[3, :, :3],
        "gravity": signs[3, :, 3:6] / np.sqrt(3),
    }
    replay(standing("wild.tdz", **wild), actuator="xl330")
    assert names(tmp_path) == [b"wild-gap", b"wild.tdz"]
    text = (tmp_path / "wild-gap" / GAP_FILE).read_text()
    told = json.loads(text, parse_constant=pytest.fail)
    assert told["verdict"] == "No duck that the simulator knows"
    assert told["causes"] == []
    assert told["size_left"] > 30


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("mine", [PAGE_FILE, GAP_FILE, TWIN_FILE])
def test_a_file_of_the_same_name_that_no_replay_left_stays(standing, tmp_path, mine):
    log, out = standing("walk.tdz"), tmp_path / "mine"
    out.mkdir()
    (out / GAP_FILE).write_text('{"mine": 1}')
    (out / mine).write_text('{"mine": 2}')
    with pytest.raises(ConfigError, match="was left by no replay and would be lost"):
        replay(log, out=out, actuator="position")
    assert (out / mine).read_text() == '{"mine": 2}'
