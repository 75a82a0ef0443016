import os

import pytest

from hardware.errors import ConfigError
from hardware.files import creating, parse_object, replacing


def test_the_new_file_takes_the_old_ones_place_only_when_it_is_whole(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.suffix == ".json"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "safe").mkdir()
    kept = tmp_path / "safe" / "ann"
    kept.write_text("old")
    link = tmp_path / "duck.toml"
    link.symlink_to("safe/ann")
    with replacing(link) as temporary:
        temporary.write_text("new")
        assert temporary.suffix == ".toml"
    assert link.is_symlink() and not kept.is_symlink() and kept.read_text() == "new"
    assert list(kept.parent.iterdir()) == [kept]


def test_a_link_that_leads_to_nothing_yet_leads_to_the_new_file(tmp_path):
    link = tmp_path / "duck.toml"
    link.symlink_to("later.toml")
    with replacing(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink() and (tmp_path / "later.toml").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_link_into_a_folder_that_is_not_there_is_not_broken_further(tmp_path):
    link = tmp_path / "duck.toml"
    link.symlink_to("nowhere/ann.toml")
    with pytest.raises(FileNotFoundError), replacing(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink() and list(tmp_path.iterdir()) == [link]


@pytest.mark.parametrize("writing", [replacing, creating])
@pytest.mark.parametrize(
    "name", ["a" * 255, "\U0001f986" * 60 + ".json", "\U0001f986" * 30 + "." + "\U0001f986" * 32]
)
def test_a_name_as_long_as_a_file_system_takes_is_written_to(tmp_path, writing, name):
    with writing(tmp_path / name) as temporary:
        temporary.write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def no_links(*names):
    raise PermissionError("what link() gives on a VFAT stick")


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_never_takes_the_place_of_one_that_came_meanwhile(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "a.tdz"
    with pytest.raises(FileExistsError), creating(path) as temporary:
        temporary.write_text("new")
        path.write_text("precious")
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_is_there_only_when_it_is_whole(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "a.tdz"
    with creating(path) as temporary:
        temporary.write_text("new")
        assert not path.exists() and temporary.suffix == ".tdz"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", [b"1e999", b"-1e400", b"NaN", b"[Infinity]", b"1" + b"0" * 400 + b".5"])
def test_a_number_that_no_float_can_hold_is_refused(text):
    with pytest.raises(ConfigError, match=r"x\.json is not valid JSON: .*number"):
        parse_object(b'{"a": ' + text + b"}", "x.json", ConfigError)
