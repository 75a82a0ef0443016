"""What report.json and report.html hold: complete, self-contained, and safe whatever a folder says."""

import json
import math
import re
from html.parser import HTMLParser

import pytest

from hardware.errors import ConfigError
from hardware.joints import NUM_JOINTS
from microduck.evaluation import Demands
from microduck.report import PAGE_FILE, REPORT_FILE, charts
from microduck.report.charts import stretches
from microduck.report.compare import deltas, unshared
from microduck.report.document import as_text, read_summary
from microduck.report.measures import MEASURES
from microduck.report.page import page
from microduck.report.write import check_writable, write_report

MP4 = b"\x00\x00\x00\x18ftypmp42"


class Page(HTMLParser):
    """Every tag with its attributes, and all text; refuses tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.found, self.texts, self.open = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]

    @property
    def text(self):
        return " ".join(self.texts)


@pytest.fixture
def hop(result):
    """A hop that is too low, by its own figures."""
    return result(
        "hop", Demands(hops=True), command=(0.0, 0.0, 0.0), airborne=0.2, apex=0.01, cost_of_transport=None
    )


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    return [value] if isinstance(value, float) else []


def test_the_json_is_strict_finite_and_complete(report, study, result, hop):
    text = as_text(report(study(result(), hop, rough=[result(), hop])))
    data = json.loads(text, parse_constant=pytest.fail)
    assert all(math.isfinite(number) for number in numbers(data)) and len(numbers(data)) > 50
    assert (data["kind"], data["schema"]) == ("microduck-report", 1)
    walk, low = data["tasks"]
    assert (walk["task"], walk["met"], walk["score"], walk["not_met"]) == ("walk", True, 1.0, [])
    assert (low["met"], low["score"]) == (False, 0.5)  # 1 cm of 2 cm, all else kept
    assert low["not_met"] == ["hop height 1 cm at 0 0 0, at least 2 cm"]
    assert set(walk["measures"]) == {measure.name for measure in MEASURES}
    point = walk["commands"][0]
    assert point["command"] == [0.2, 0.0, 0.0] and len(point["torque_p95"]) == NUM_JOINTS
    assert point["apex"] is None
    assert [check["criterion"] for check in walk["checks"]] == ["survival", "speed", "heading"]
    assert len(data["rough_tasks"]) == 2
    assert data["subject"]["policy_sha256"] == "ab" * 32
    assert {"command", "made", "wall_s", "seed", "versions", "cpu", "cores"} <= data["provenance"].keys()
    assert data["provenance"]["command"] == "microduck eval runs/one"
    assert data["provenance"]["cores"] >= 1 and "mujoco" in data["provenance"]["versions"]


def test_a_figure_that_is_not_finite_is_never_written(report, study, result):
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_text(report(study(result(power=math.nan))))


def test_the_page_needs_nothing_from_elsewhere(report, study, result, hop):
    rough = [result(), hop]
    text = page(report(study(result(), hop, rough=rough)), [{"walk": MP4, "hop": MP4}])
    shown = Page(text)
    sources = [
        attributes[name] for _, attributes in shown.found for name in ("src", "href") if name in attributes
    ]
    assert len(sources) == 7 and all(source.startswith("data:") for source in sources)
    assert not re.search(r"https?:|@import|url\(|<script|<link|<iframe", text.lower())
    assert len(shown.all("video")) == 2 and all("controls" in video for video in shown.all("video"))
    pictures = shown.all("img")
    assert all(picture["src"].startswith("data:image/png;base64,iVBOR") for picture in pictures)
    assert all(picture["alt"] for picture in pictures)
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in shown.all("meta")


def test_the_page_says_what_is_met_and_what_is_missing(report, study, result, hop):
    text = Page(page(report(study(result(), hop, rough=[result(), hop])), [], "No films: no screen.")).text
    for said in (
        "runs/one: 1 of 2 tasks met",
        "✗ not met",
        "hop height 1 cm at 0 0 0, at least 2 cm",
        "No films: no screen.",
        "ab" * 32,
        "transitions 6000000",
        "took",
        "Ducks that all differ, and are pushed",
        "microduck eval runs/one",
    ):
        assert said in text
    plain = Page(page(report(study(result())), [])).text
    assert "Ducks that all differ" not in plain


@pytest.mark.parametrize(
    "name", ['<script>alert("x")</script>', '"><img src=http://x>', "$\\frac{$", "a & b", "_x$"]
)
def test_names_of_tasks_and_folders_are_shown_and_never_run(report, study, result, name):
    text = page(report(study(result(name), name=name)), [{name: MP4}])
    shown = Page(text)
    assert shown.all("script") == []
    assert all(picture["src"].startswith("data:") for picture in shown.all("img"))
    assert name in shown.text


def test_two_policies_stand_side_by_side(report, study, result, hop):
    text = page(report(study(result(), hop), study(result(power=4.0), name="runs/two")), [{"walk": MP4}] * 2)
    shown = Page(text)
    assert "runs/one: 1 of 2 tasks met, beside runs/two" in shown.text
    assert '<td class="better">2<div>-2 better</div></td>' in text
    assert "Only runs/one has: hop." in shown.text
    assert len(shown.all("video")) == 2


def test_differences_are_marked_by_the_better_direction(result, hop):
    better = {"survival": 1.0, "speed_error": 0.01, "heading_drift_p95": 0.05, "power": 1.0}
    worse = {"survival": 0.5, "speed_error": 0.02, "heading_drift_p95": 0.10, "power": 2.0}
    same = {"foot_slip": 0.0100, "double_support": 0.3}
    marks = {
        delta.measure.name: delta.mark
        for delta in deltas(
            [result(**better, **same)], [result(**worse, foot_slip=0.01005, double_support=0.4)]
        )
    }
    for name in ("score", "survival", "speed error", "heading drift, p95", "power"):
        assert marks[name] == "better"
    assert marks["foot slip"] == "same"  # half a percent
    assert marks["double support"] == "differs"  # neither way is better
    assert "airborne" not in marks  # a walk is not asked for that
    back = deltas([result(**worse)], [result(**better)])
    assert {delta.mark for delta in back} == {"worse", "same"}
    higher = result("hop", Demands(hops=True), command=(0.0, 0.0, 0.0), airborne=0.2, apex=0.03)
    assert {delta.measure.name: delta.mark for delta in deltas([higher], [hop])}["hop height"] == "better"


def test_tasks_are_compared_by_name_and_the_others_are_listed(result, hop):
    assert {delta.task for delta in deltas([result(), hop], [hop, result("run")])} == {"hop"}
    assert unshared([result(), hop], [hop, result("run")]) == ["walk"]


def test_differences_are_in_the_json(report, study, result):
    data = json.loads(as_text(report(study(result()), study(result(power=4.0), name="runs/two"))))
    assert data["compared_with"]["subject"]["folder"] == "runs/two"
    power = next(each for each in data["differences"] if each["measure"] == "power")
    assert power == {"task": "walk", "measure": "power", "this": 2.0, "other": 4.0, "mark": "better"}


def test_contacts_become_stretches_of_time():
    on = [1, 1, 0, 0, 0, 1, 1, 1, 0, 1]
    assert stretches([bool(each) for each in on]) == [
        pytest.approx(stretch) for stretch in ((0.0, 0.04), (0.1, 0.06), (0.18, 0.02))
    ]
    assert stretches([False] * 3) == []


def test_there_is_no_curve_of_what_no_task_commands(result):
    standing = result(command=(0.0, 0.0, 0.0))
    assert charts.curve([standing], charts.SPEED) is None
    assert charts.curve([standing], charts.TURN_RATE) is None
    assert charts.curve([result()], charts.SPEED).startswith(b"\x89PNG")


# Files -----------------------------------------------------------------------------------------------------


def test_both_files_are_written_and_nothing_beside_them(report, study, result, tmp_path):
    write_report(report(study(result())), [], "Not filmed.", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [PAGE_FILE, REPORT_FILE]
    assert json.loads((tmp_path / REPORT_FILE).read_text())["tasks"][0]["task"] == "walk"


def test_an_older_report_stays_when_the_new_one_fails(report, study, result, tmp_path):
    (tmp_path / REPORT_FILE).write_text("old")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_report(report(study(result(power=math.inf))), [], "", tmp_path)
    assert (tmp_path / REPORT_FILE).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [REPORT_FILE]


def test_a_place_that_cannot_be_written_is_named_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        ConfigError, match=r"cannot write a report into .*file.*choose another folder with --out"
    ):
        check_writable(tmp_path / "file")
    check_writable(tmp_path / "new" / "folder")
    assert list((tmp_path / "new" / "folder").iterdir()) == []


def test_a_summary_reads_back_without_commands_and_checks(report, study, result, hop, tmp_path):
    write_report(report(study(result(), hop)), [], "", tmp_path)
    told = read_summary(tmp_path / REPORT_FILE)
    assert (told["policy_sha256"], told["seed"], told["episodes"]) == ("ab" * 32, 10_000, 4)
    assert [task["met"] for task in told["tasks"]] == [True, False]
    assert set(told["tasks"][0]) == {"task", "met", "score", "not_met", "measures"}
    assert told["rough_tasks"] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not valid JSON"),
        ('{"score": NaN}', "NaN is no JSON number"),
        ("[1]", "must hold a JSON object"),
        ("{}", r"is of kind and schema \(None, None\)"),
        ('{"kind": "microduck-report", "schema": 2}', "this toolkit reads"),
        ('{"kind": "microduck-report", "schema": 1}', "lacks its provenance"),
        (
            '{"kind": "microduck-report", "schema": 1, "provenance": {}, "subject": {}, "tasks": [1]}',
            "must list one object for each task",
        ),
        (
            '{"kind": "microduck-report", "schema": 1, "provenance": {}, "subject": {}, "tasks": [], '
            '"rough_tasks": {}}',
            "'rough_tasks' must list",
        ),
    ],
)
def test_a_damaged_report_is_refused_by_name(tmp_path, text, said):
    path = tmp_path / REPORT_FILE
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as caught:
        read_summary(path)
    assert str(path) in str(caught.value)
