from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from firmware_bridge.cli import main
from firmware_bridge.emulator import EmulatedDuck
from firmware_bridge.skills import load_bundle
from hardware.errors import BundleError

RUNNER = """
import sys
from firmware_bridge import bus, loop, modes
bus.HOST_MARGIN_S, bus.ACK_MARGIN_S = 0.05, 0.2  # a busy machine must not look like a lost duck
modes.RISE_S = loop.RISE_S = 0.1
{patch}
from firmware_bridge.cli import main
sys.exit(main())
"""
HANG_S = 60
"""Time after which a process that should have ended is given up [s]."""
Popen = subprocess.Popen[str]


def start(duck: EmulatedDuck, bundle: Path, *arguments: str, patch: str = "") -> Popen:
    command = [
        sys.executable,
        "-c",
        RUNNER.format(patch=patch),
        "run",
        str(bundle),
        "--port",
        duck.port,
        *arguments,
    ]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def wait_for(process: Popen, mode: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"{mode}:"):
            return
    pytest.fail(f"the process ended before mode {mode}")


def finish(process: Popen) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=HANG_S)
    return process.returncode, out, err


def test_help_comes_without_loading_numpy_or_onnxruntime() -> None:
    script = (
        "import sys\nfrom firmware_bridge.cli import main\ntry:\n    main(['run', '--help'])\n"
        "except SystemExit as end:\n    print('loaded', {'numpy', 'onnxruntime'} & set(sys.modules), end)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "exit codes:" in done.stdout and "--calibration FILE" in done.stdout
    assert done.stdout.endswith("loaded set() 0\n")


def test_the_command_also_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "firmware_bridge.cli"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "usage: duck" in done.stderr


def test_skills_lists_boxes_and_clocks(bundle_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skills", str(bundle_folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "layout sensor" in lines[0] and "P gain 200" in lines[0]
    assert " ".join(lines[2].split()) == "walk -0.1 to 0.3 0 to 0 -0.5 to 0.5 1.5 +1 per m/s"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--skill", "fly"), "no skill 'fly'; choose one of ['stand', 'walk']"),
        (("--command", "0.4", "0", "0"), "command vx = 0.4 is outside [-0.1, 0.3]"),
        (("--command", "0.1", "0", "nan"), "command yaw_rate = nan is outside [-0.5, 0.5]"),
        (("--calibration", "none.toml"), "none.toml is not a file; check the path"),
        (("--json", "no/folder/s.json"), "there is no folder no/folder"),
        ((), "/dev/no-duck does not exist"),
    ],
)
def test_a_refusal_is_one_clear_line_before_the_port_is_opened(
    bundle_folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert main(["run", str(bundle_folder), "--port", "/dev/no-duck", *arguments]) == 1
    seen = capsys.readouterr()
    assert message in seen.err and seen.err.startswith("duck: ")
    assert seen.out == "" and seen.err.count("\n") == 1


def test_debug_shows_where_an_error_came_from(bundle_folder: Path) -> None:
    with pytest.raises(BundleError):
        main(["run", str(bundle_folder), "--port", "/dev/no-duck", "--skill", "fly", "--debug"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--seconds", "0"),
        ("--seconds", "inf"),
        ("--seconds", "soon"),
        ("--command", "1", "2"),
        ("--stdin", "--command", "0", "0", "0"),
        ("--fast",),
    ],
)
def test_a_command_line_that_is_not_valid_exits_with_2(
    bundle_folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", str(bundle_folder), "--port", "/dev/no-duck", *arguments])
    assert end.value.code == 2


def test_a_duck_on_a_real_port_rises_and_walks_for_the_time_asked(
    duck: EmulatedDuck, bundle_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--port", duck.port, "--command", "0.2", "0", "-0.3", "--seconds", "1"]
    code = main(["run", str(bundle_folder), *arguments, "--json", str(tmp_path / "s.json")])
    seen = capsys.readouterr()
    data = json.loads((tmp_path / "s.json").read_text())
    assert code == data["exit_code"] == 0
    assert (data["skill"], data["mode"], data["run_s"]) == ("walk", "stopped", pytest.approx(1.0))
    assert data["policy_ticks"] + data["held_ticks"] + data["missed"] >= 50
    assert "stopped: drove the time asked for" in seen.out
    assert [line.split(":")[0] for line in seen.err.splitlines()] == ["rise", "run", "stopped"]
    # Left hip yaw: the policy's constant 0.25 times 0.8 rad; the other joints stand, but for the left ankle.
    assert duck.goals[0] == pytest.approx(0.2, abs=0.001)
    assert duck.goals[13] == pytest.approx(-0.452984, abs=0.001)
    assert (duck.p_gains == 200).all() and not duck.torque.any()


@pytest.mark.parametrize("numbers", [["SIGINT"], ["SIGTERM"], ["SIGHUP"], ["SIGINT", "SIGINT"]])
def test_a_signal_leaves_the_duck_limp_and_a_matching_exit_code(
    duck: EmulatedDuck, bundle_folder: Path, numbers: list[str]
) -> None:
    process = start(duck, bundle_folder)
    wait_for(process, "run")
    assert duck.torque.all()
    for name in numbers:
        process.send_signal(signal.Signals[name])
    code, out, err = finish(process)
    assert code == 128 + signal.Signals[numbers[0]]
    assert f"stopped: {numbers[0]} received" in out and "Traceback" not in err
    assert not duck.torque.any()


def test_a_signal_while_rising_is_obeyed_before_the_rise_is_over(
    duck: EmulatedDuck, bundle_folder: Path
) -> None:
    process = start(duck, bundle_folder, patch="modes.RISE_S = loop.RISE_S = 1e9")
    wait_for(process, "rise")
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 143
    assert not duck.torque.any()


ERROR_AT_TICK_50 = """
from firmware_bridge.skills import Bundle
calls = []
def act(self, observation, skill, act=Bundle.act):
    calls.append(1)
    return act(self, observation, skill) if len(calls) < 52 else 1 / 0  # two calls warm up
Bundle.act = act
"""


def test_an_error_at_tick_50_leaves_the_duck_limp_and_shows_itself(
    duck: EmulatedDuck, bundle_folder: Path
) -> None:
    process = start(duck, bundle_folder, patch=ERROR_AT_TICK_50)
    wait_for(process, "run")
    assert duck.torque.all()
    code, _, err = finish(process)
    assert code == 1
    assert "fault: an error ended the loop" in err and "ZeroDivisionError" in err
    assert not duck.torque.any()


def model_of_ramp(make_model: Callable[..., onnx.ModelProto], *last: onnx.NodeProto) -> bytes:
    """Return a policy whose `last` nodes use the clock's ramp, which reaches 1 after 0.4 s of driving."""
    ramp = [
        helper.make_node("Slice", ["observation", "from", "to", "axis"], ["ramp"]),
        helper.make_node("Cast", ["ramp"], ["whole"], to=onnx.TensorProto.INT64),
        helper.make_node("Gather", ["zeros", "whole"], ["deep"]),
        helper.make_node("Squeeze", ["deep", "axis"], ["still"]),
    ]
    model = make_model([*ramp, *last])
    for name, value in (("from", [40]), ("to", [41])):
        model.graph.initializer.append(numpy_helper.from_array(np.array(value, np.int64), name))
    rows = 2 if last[0].op_type != "Identity" else 1
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((rows, 14), np.float32), "zeros"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(1, np.float32), "one"))
    return model.SerializeToString()


NOT_A_NUMBER = (
    helper.make_node("Sub", ["one", "ramp"], ["rest"]),
    helper.make_node("Div", ["still", "rest"], ["action"]),  # 0 / 0 once the ramp is at 1
)
OUT_OF_RANGE = (helper.make_node("Identity", ["still"], ["action"]),)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [(NOT_A_NUMBER, "the policy's action is not finite"), (OUT_OF_RANGE, "failed on 'walk'")],
)
def test_a_policy_that_breaks_while_driving_ends_in_a_fault_and_limp(
    duck: EmulatedDuck,
    draft: Any,
    tmp_path: Path,
    make_model: Callable[..., onnx.ModelProto],
    nodes: Any,
    message: str,
) -> None:
    draft.model = model_of_ramp(make_model, *nodes)
    code, out, err = finish(start(duck, draft.write(tmp_path / "b")))
    assert code == 4
    assert message in out and "Traceback" not in err
    assert "driven       0.40 s" in out
    assert not duck.torque.any()


def test_a_bus_that_falls_silent_ends_in_a_fault_that_warns_of_torque(
    duck: EmulatedDuck, bundle_folder: Path
) -> None:
    process = start(duck, bundle_folder, patch="bus.ACK_MARGIN_S = 0.02")
    wait_for(process, "run")
    duck.filter = lambda reply: None
    code, out, _ = finish(process)
    assert code == 4
    assert "no sample for" in out and "torque may be on, switch the servos' power off" in out
    assert not duck.torque.any()  # the one packet that needs no answer got through


def test_a_duck_that_falls_goes_limp_with_its_own_exit_code(duck: EmulatedDuck, bundle_folder: Path) -> None:
    process = start(duck, bundle_folder)
    wait_for(process, "run")
    duck.set_imu(np.zeros(3), np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]))  # on its side
    code, out, _ = finish(process)
    assert code == 3
    assert "fallen: the trunk leaned more than 60 degrees" in out
    assert not duck.torque.any()


def test_commands_come_from_standard_input(duck: EmulatedDuck, bundle_folder: Path, tmp_path: Path) -> None:
    process = start(duck, bundle_folder, "--stdin", "--seconds", "0.5", "--json", str(tmp_path / "s.json"))
    assert process.stdin is not None
    process.stdin.write("0.2 0 0\nquack\n")
    process.stdin.flush()
    code, out, _ = finish(process)
    assert code == 0
    assert "1 lines were no command" in out
    assert json.loads((tmp_path / "s.json").read_text())["commands_refused"] == 1


def test_an_emulated_duck_can_be_driven_by_another_process(bundle_folder: Path) -> None:
    command = [sys.executable, "-m", "firmware_bridge.cli", "emulate"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as emulator:
        assert emulator.stdout is not None
        port = emulator.stdout.readline().strip()
        patch = RUNNER.format(patch="")
        run = ["run", str(bundle_folder), "--port", port, "--skill", "stand", "--seconds", "0.2"]
        done = subprocess.run(
            [sys.executable, "-c", patch, *run], capture_output=True, text=True, check=False
        )
        emulator.send_signal(signal.SIGINT)
        assert emulator.wait(HANG_S) == 0
    assert done.returncode == 0, done.stderr


def test_the_bundle_in_the_package_is_meant_when_none_is_named(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("firmware_bridge.cli.skills.shipped_bundle", lambda: bundle_folder)
    assert main(["skills"]) == 0
    assert str(bundle_folder) in capsys.readouterr().out
    assert list(load_bundle(bundle_folder).skills) == ["walk", "stand"]
