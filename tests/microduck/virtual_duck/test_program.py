"""The virtual duck as a program: its port and link, its files, its end, and what it refuses."""

import json
import os

import pytest

from hardware.errors import ConfigError, RenderError
from microduck.cli.virtual_duck import virtual_duck
from microduck.viewer import Viewer
from microduck.virtual_body import VirtualBody
from microduck.virtual_duck import VirtualDuckOptions, run_virtual_duck


def test_virtual_duck_tells_its_port_links_it_and_ends_in_time(tmp_path, said):
    link = tmp_path / "duck"
    seen = []

    def notify(text):
        seen.append(os.path.realpath(link))
        said.append(text)

    assert run_virtual_duck(VirtualDuckOptions(seconds=0.05, link=link), notify) == []
    assert said == [f"the virtual duck is on {link}"]
    assert seen[0].startswith("/dev/pts/")
    assert not link.is_symlink()


def test_virtual_duck_stops_when_asked(said):
    assert run_virtual_duck(VirtualDuckOptions(), said.append, lambda: True) == []
    assert said[0].startswith("the virtual duck is on /dev/pts/")


def test_link_replaces_an_old_link_but_no_file(tmp_path, said):
    link = tmp_path / "duck"
    link.symlink_to("/dev/pts/none")
    run_virtual_duck(VirtualDuckOptions(seconds=0.01, link=link), said.append)
    link.write_text("a file")
    with pytest.raises(ConfigError, match="choose another path"):
        run_virtual_duck(VirtualDuckOptions(seconds=0.01, link=link), said.append)
    assert link.read_text() == "a file"


def test_a_link_of_the_users_to_a_file_stays(tmp_path, said):
    link, file, report = tmp_path / "duck", tmp_path / "file", tmp_path / "report.json"
    file.write_text("a file")
    report.write_text("of yesterday")
    link.symlink_to(file)
    with pytest.raises(ConfigError, match="leads to no port"):
        run_virtual_duck(VirtualDuckOptions(seconds=0.01, report=report, link=link), said.append)
    assert link.readlink() == file
    assert report.read_text() == "of yesterday"


def test_a_link_name_that_is_none_is_told(tmp_path, said):
    with pytest.raises(ConfigError, match="File name too long"):
        run_virtual_duck(VirtualDuckOptions(seconds=0.01, link=tmp_path / ("a" * 300)), said.append)


def test_a_recording_is_no_place_for_a_report(tmp_path):
    (tmp_path / "walk.tdz").write_bytes(b"a recording")
    with pytest.raises(ConfigError, match="a recording's name"):
        virtual_duck(seconds=0.01, report=tmp_path / "walk.tdz")
    assert (tmp_path / "walk.tdz").read_bytes() == b"a recording"


def test_report_is_tried_before_the_start(tmp_path, said):
    options = VirtualDuckOptions(seconds=0.01, report=tmp_path / "report.json")
    run_virtual_duck(options, said.append)
    assert json.loads(options.report.read_text()) == {"runs": []}
    (tmp_path / "file").write_text("in the way")
    said.clear()
    with pytest.raises(ConfigError, match="choose another place"):
        run_virtual_duck(VirtualDuckOptions(report=tmp_path / "file" / "report.json"), said.append)
    assert not said


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_impossible_lengths_are_refused(seconds):
    with pytest.raises(ConfigError, match="seconds"):
        VirtualDuckOptions(seconds=seconds)


def test_video_must_be_an_mp4(tmp_path):
    with pytest.raises(ConfigError, match=r"must end in \.mp4"):
        VirtualDuckOptions(video=tmp_path / "walk.gif")


def test_view_without_a_screen_says_so(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    body = VirtualBody()
    with pytest.raises(RenderError, match="no screen; run without a view"):
        Viewer(body.model, body.data)
