from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.commands.request import Event
from firmware_bridge.commands.script import Script, ScriptCommands, load_script
from firmware_bridge.skills.manifest import Skill
from hardware.errors import ConfigError

GOOD = """# to the door and back
0.0   stand  0    0  0
2.0   walk   0.2  0  0     # off we go

6.0   -      0.2  0  0.4   0 0.1 -0.2 0
10.0  end
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "dance.txt"


def load(file: Path, text: str, skills: dict[str, Skill]) -> Script:
    file.write_text(text)
    return load_script(file, skills, "walk")


def test_each_command_holds_until_the_next_and_the_last_line_ends_the_drive(
    file: Path, skills: dict[str, Skill], clock: Any
) -> None:
    source = ScriptCommands(load(file, GOOD, skills), clock)
    source.begin()
    seen = []
    for moment in (0.0, 1.99, 2.0, 5.9, 6.0, 9.99):
        clock.now_s = 5.0 + moment
        request = source.latest()
        seen.append((request.skill, request.command.tolist(), request.head.tolist(), request.event))
    assert seen == [
        *[("stand", [0, 0, 0], [0, 0, 0, 0], None)] * 2,
        *[("walk", [0.2, 0, 0], [0, 0, 0, 0], None)] * 2,
        *[("walk", [0.2, 0, 0.4], [0, 0.1, -0.2, 0], None)] * 2,
    ]
    clock.now_s = 15.0
    assert [source.latest().event, source.latest().event] == [Event.QUIT, None]


def test_time_runs_only_from_the_moment_the_duck_stands(
    file: Path, skills: dict[str, Skill], clock: Any
) -> None:
    source = ScriptCommands(load(file, "0 walk 0.2 0 0\n1 end", skills), clock)
    assert not source.interactive
    clock.now_s += 100.0
    waiting = source.latest()
    assert (waiting.skill, waiting.command.tolist(), waiting.event) == ("walk", [0, 0, 0], None)
    source.begin()
    clock.now_s += 0.5
    source.begin()
    assert (source.latest().command.tolist(), source.latest().age_s) == ([0.2, 0, 0], 0.0)
    clock.now_s += 0.5
    assert source.latest().event is Event.QUIT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0 hop 0 0 0\n1 end",
            r"line 1: no skill is called 'hop'; choose one of \['walk', 'stand', 'trot'\]",
        ),
        ("0 walk 0.2 0 0\n1 walk 0.31 0 0\n2 end", r"line 2: command vx = 0.31 is outside \[-0.1, 0.3\]"),
        ("0 walk 0.2 0 0\n1 stand 0.2 0 0\n2 end", r"line 2: command vx = 0.2 is outside \[0, 0\]"),
        ("0 - 0 0.1 0\n1 end", r"line 1: command vy = 0.1"),
        ("0 walk 0 0 0 0 0 9 0\n1 end", r"line 1: head head_yaw = 9 is outside \[-1, 1\] rad"),
        ("0 walk 0 0 0 0 nan 0 0\n1 end", "line 1: HEAD_PITCH is 'nan'; it must be a finite number"),
        ("0 walk inf 0 0\n1 end", "line 1: VX is 'inf'; it must be a finite number"),
        ("0 walk 0 0 x\n1 end", "line 1: YAW is 'x'"),
        ("-1 walk 0 0 0\n1 end", "line 1: TIME is -1 s; it must be at least 0 s"),
        ("0 walk 0 0 0\n0 walk 0 0 0\n1 end", "line 2: TIME is 0 s; it must be more than 0 s"),
        ("# a\n\n1 walk 0 0 0\n1.0 end", "line 4: TIME is 1.0 s; it must be more than 1 s"),
        ("0 walk 0 0 0\n1e9 end", "line 2: TIME is 1e9 s.*at most 86400 s"),
        ("0 walk 0 0\n1 end", "line 1: 4 words where TIME SKILL VX VY YAW"),
        ("0\n1 end", "line 1: 1 words"),
        ("0 walk 0 0 0\n1 end\n2 walk 0 0 0", "line 3: nothing may follow the line with 'end'"),
        ("0 'walk 0 0 0\n1 end", "line 1: No closing quotation"),
        ("0 walk 0 0 0", "needs a command and a last line `TIME end`"),
        ("1 end", "needs a command and a last line"),
        ("", "needs a command and a last line"),
    ],
)
def test_a_bad_script_is_refused_whole_naming_file_and_line(
    file: Path, skills: dict[str, Skill], text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=f"dance.txt.*{message}"):
        load(file, text, skills)


def test_a_script_that_is_no_text_or_too_long_is_refused(file: Path, skills: dict[str, Skill]) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="no text in UTF-8"):
        load_script(file, skills, "walk")
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(ConfigError, match="larger than 1048576 bytes"):
        load_script(file, skills, "walk")
    lines = "\n".join(f"{number} - 0 0 0" for number in range(10_001))
    with pytest.raises(ConfigError, match="line 10001: a script holds at most 10000 commands"):
        load(file, lines, skills)


def test_a_skill_with_a_space_in_its_name_stands_in_quotes(file: Path, skills: dict[str, Skill]) -> None:
    named = {**skills, "slow walk": skills["walk"]}
    assert load(file, "0 'slow walk' 0 0 0\n1 end", named).steps[0].skill == "slow walk"


def test_the_script_of_the_documentation_is_valid(file: Path, skills: dict[str, Skill]) -> None:
    text = (Path(__file__).parents[3] / "docs" / "commands.md").read_text(encoding="utf-8")
    example = text.partition("## Script")[2].split("```")[1]
    script = load(file, example, {"walk": skills["walk"]})
    assert (len(script.steps), script.end_s) == (3, 10.0)
