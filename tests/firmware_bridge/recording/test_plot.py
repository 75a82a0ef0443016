"""Pictures of a recording."""

from __future__ import annotations

import base64
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware_bridge.cli import main
from firmware_bridge.recording.figures import MOST_BANDS, MOST_POINTS, draw, encode, thin
from firmware_bridge.recording.log import Log, read_log, write_log
from firmware_bridge.recording.panels import Band, bands, between, chapters
from firmware_bridge.recording.plot import plot
from hardware.errors import ConfigError
from hardware.joints import JOINT_NAMES


def test_there_is_a_panel_for_each_joint_with_what_was_asked_written_and_measured(drive: Path) -> None:
    panels = {panel.title: panel for panel in chapters(read_log(drive))["Joints"]}
    assert tuple(panels) == JOINT_NAMES
    knee = {line.label: line.values[50] for line in panels["left_knee"].lines}
    assert knee == {"requested": 50.6875, "applied": 50.4375, "measured": 50.1875}


def test_timing_shows_how_far_apart_ticks_were_and_should_have_been(tmp_path: Path) -> None:
    arrays = {"time": np.array([0.0, 0.021, 0.075]), "periods": np.array([1, 1, 3])}
    write_log(tmp_path / "a.tdz", arrays, {})
    panel = chapters(read_log(tmp_path / "a.tdz"))["Timing"][1]
    due, measured = panel.lines
    assert due.values.tolist() == [20, 20, 60]
    assert measured.values[1:] == pytest.approx([21, 54]) and np.isnan(measured.values[0])


def test_every_chapter_has_its_quantities(drive: Path) -> None:
    found = {name: [panel.title for panel in panels] for name, panels in chapters(read_log(drive)).items()}
    assert found["IMU"] == ["gravity", "angular velocity"]
    assert found["Command"] == ["vx", "vy", "yaw_rate", "head"]
    assert found["Power"] == ["current", "voltage", "temperature"]
    assert found["Timing"] == ["parts of the tick", "from the tick before", "so far"]


def test_bands_are_the_stretches_in_one_mode(drive: Path) -> None:
    found = [(band.mode, round(band.begin, 3), round(band.end, 3)) for band in bands(read_log(drive))]
    assert found == [("limp", 0.0, 0.2), ("rise", 0.2, 0.6), ("run", 0.6, 1.2)]


def test_a_log_without_ticks_has_no_bands(tmp_path: Path) -> None:
    write_log(tmp_path / "a.tdz", {"time": np.zeros(0)}, {})
    assert bands(read_log(tmp_path / "a.tdz")) == []


def test_a_stretch_of_a_log_keeps_its_ticks_and_its_description(drive: Path) -> None:
    part = between(read_log(drive), 0.39, 0.61)
    assert part.ticks == 11 and part.arrays["position"][0, 0] == 20 and part.meta["layout"] == "sensor"


def test_a_long_line_is_thinned_and_keeps_its_peaks_and_gaps() -> None:
    values = np.zeros(180_000)
    values[77_777], values[100_001] = 9.0, -7.0
    values[150_000:160_000] = np.nan
    seconds, thinned = thin(np.arange(180_000) * 0.02, values)
    assert len(seconds) == len(thinned) <= MOST_POINTS
    assert (np.nanmax(thinned), np.nanmin(thinned)) == (9.0, -7.0)
    assert seconds[np.nanargmax(thinned)] == pytest.approx(77_777 * 0.02, abs=2)
    assert np.isnan(thinned[(seconds > 3010) & (seconds < 3190)]).all()


def test_a_short_line_is_drawn_as_it_is() -> None:
    seconds, values = np.arange(5.0), np.array([1.0, np.nan, 2.0, 3.0, 4.0])
    assert thin(seconds, values)[1] is values


def test_a_page_needs_nothing_beside_it_and_what_a_file_says_is_never_markup(
    tmp_path: Path, drive: Path, capsys: Any
) -> None:
    pytest.importorskip("matplotlib")
    hostile = "<script>alert(1)</script>$\\frac"
    log, path = read_log(drive), tmp_path / "hostile.tdz"
    events = [*log.meta["events"], {"time": 100.0, "mode": "run", "reason": hostile}, 7, {"time": hostile}]
    write_log(path, log.arrays, {**log.meta, "modes": ["limp", hostile], "bundle": hostile, "events": events})
    assert main(["plot", str(path)]) == 0
    assert capsys.readouterr().out.endswith("hostile.html: 60 ticks\n")
    page = path.with_suffix(".html").read_text()
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert len(pictures) == 5 and all(b"<svg" in base64.b64decode(picture) for picture in pictures)
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []
    assert "<script" not in page and page.count("&lt;script&gt;alert(1)") == 2
    assert "0.60 s" in page and "the policy does what is asked" in page


def test_a_picture_has_a_title_for_each_panel_and_a_name_for_each_mode(drive: Path) -> None:
    pytest.importorskip("matplotlib")
    log = read_log(drive)
    figure = draw(log, chapters(log)["IMU"], bands(log))
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["gravity", "angular velocity [rad/s]"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["limp", "rise", "run"]
    assert encode(figure, "png").startswith(b"\x89PNG")


def test_of_many_stretches_the_longest_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ticks = np.arange(5000)
    modes = np.where(ticks < 4000, ticks % 2, 2)
    write_log(tmp_path / "a.tdz", {"time": ticks * 0.02, "mode": modes}, {"modes": ["run", "sit", "limp"]})
    log = read_log(tmp_path / "a.tdz")
    axis = draw(log, chapters(log)["IMU"], bands(log)).axes[0]
    drawn = [path.get_extents() for spans in axis.collections for path in spans.get_paths()]
    assert len(drawn) == MOST_BANDS
    assert max((box.x0, box.x1) for box in drawn) == pytest.approx((80.0, 100.0))  # the last thousand ticks
    assert axis.get_ylim()[1] < 1  # nothing is drawn in the panel's own values, and no band widens it


def test_another_ending_is_refused_before_anything_is_read(tmp_path: Path, capsys: Any) -> None:
    assert main(["plot", str(tmp_path / "no.tdz"), "-o", str(tmp_path / "a.gif")]) == 1
    assert "ends in one of .html, .png, .svg" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("-o", "{0}/no/a.html"), "cannot write {0}/no/a.html: there is no folder {0}/no; make it"),
        (("-o", "{0}/a.svg"), "cannot write {0}/a.svg: it is a folder; name a file in it"),
        (("-o", "{0}/same.html"), "{0}/same.html is the recording itself; name another file"),
        (("--between", "7", "9"), "the recording has no tick between 7 and 9 s; its last tick is at 1.18 s"),
        (("--between", "1", "0"), "the recording has no tick between 1 and 0 s"),
    ],
)
def test_a_drawing_that_cannot_be_is_refused_in_one_line_and_the_older_page_stays(
    tmp_path: Path, drive: Path, capsys: Any, arguments: tuple[str, ...], text: str
) -> None:
    (tmp_path / "a.svg").mkdir()
    (tmp_path / "same.html").hardlink_to(drive)
    drive.with_suffix(".html").write_text("older")
    recorded = drive.read_bytes()
    assert main(["plot", str(drive), *(word.format(tmp_path) for word in arguments)]) == 1
    assert text.format(tmp_path) in capsys.readouterr().err
    assert drive.with_suffix(".html").read_text() == "older" and drive.read_bytes() == recorded


@pytest.mark.parametrize("place", [".", "/", ".."])
def test_a_folder_is_no_recording_to_draw(place: str, capsys: Any) -> None:
    assert main(["plot", place]) == 1
    assert "is not a file; check the path" in capsys.readouterr().err


def test_a_file_whose_name_is_no_text_is_drawn(drive: Path) -> None:
    pytest.importorskip("matplotlib")
    strange = drive.rename(drive.with_name("drive\udcff.tdz"))  # the byte 0xff
    assert main(["plot", str(strange)]) == 0
    assert "<h1>drive?.tdz</h1>" in strange.with_suffix(".html").read_text(encoding="utf-8")


def test_without_matplotlib_the_user_is_told_what_to_install(
    tmp_path: Path, drive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"pip install 'microduck-toolkit\[plot\]'"):
        plot(read_log(drive), "a drive", tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()


def test_a_band_has_the_name_of_its_mode() -> None:
    log = Log({"time": np.array([1.0, 1.02]), "mode": np.array([0, 5])}, {"modes": ["limp"]})
    assert bands(log) == [
        Band("limp", 0.0, pytest.approx(0.02)),
        Band("?", pytest.approx(0.02), pytest.approx(0.04)),
    ]
