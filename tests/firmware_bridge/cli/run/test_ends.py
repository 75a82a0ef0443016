"""Drives, and every way they end."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from firmware_bridge.emulator.duck import EmulatedDuck

Launch: TypeAlias = Callable[..., Any]
Wait: TypeAlias = Callable[[Callable[[], Any]], None]


def test_a_duck_rises_walks_for_the_time_asked_and_sits_down(
    launch: Launch, duck: EmulatedDuck, place: Path, wait_until: Wait
) -> None:
    summary = place / "s.json"
    run = launch("--command", "0.2", "0", "-0.3", "--seconds", "1", "--report", str(summary))
    run.wait_for("run")
    wait_until(lambda: duck.goals[0] > 0.19)
    # Left hip yaw: the policy's constant 0.25 times 0.8 rad; the other joints stand, but for the left ankle.
    assert duck.goals[[0, 13]] == pytest.approx([0.2, -0.452984], abs=0.001)
    assert (duck.p_gains == 200).all()
    code, out, err = run.finish()
    data = json.loads(summary.read_text())
    assert code == data["exit_code"] == 0
    assert (data["skill"], data["mode"]) == ("walk", "stopped")
    assert 0.99 < data["run_s"] < 1.5  # by as many periods late as a busy machine misses
    assert data["policy_ticks"] + data["held_ticks"] + data["missed"] >= 50
    assert "stopped: drove the time asked for" in out
    assert [line.split(":")[0] for line in err.splitlines()] == ["sit", "stopped"]
    assert not duck.torque.any()


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_a_signal_sits_the_duck_down_and_leaves_it_limp_with_a_matching_exit_code(
    launch: Launch, duck: EmulatedDuck, name: str
) -> None:
    run = launch()
    run.wait_for("run")
    assert duck.torque.all()
    run.process.send_signal(signal.Signals[name])
    code, out, err = run.finish()
    assert code == 128 + signal.Signals[name]
    assert f"stopped: {name} received\n" in out and "sit:" in err and "Traceback" not in err
    assert not duck.torque.any()


def test_ctrl_c_again_goes_limp_without_sitting_down(launch: Launch, duck: EmulatedDuck) -> None:
    run = launch(patch="poses.SIT_S = 1e9")
    run.wait_for("run")
    run.process.send_signal(signal.SIGINT)
    run.wait_for("sit")
    run.process.send_signal(signal.SIGINT)
    code, out, _ = run.finish()
    assert code == 130
    assert "stopped: SIGINT received; limp at once, as asked" in out
    assert not duck.torque.any()


INTERRUPTED = "os.kill(os.getpid(), signal.SIGINT)"
WHILE_LOADING = f"""
from firmware_bridge.drive import signals
enter = signals.StopSignals.__enter__
signals.StopSignals.__enter__ = lambda self: (enter(self), {INTERRUPTED})[0]
"""
WHILE_FINDING = f"""
from firmware_bridge.robot import body
wait = body._await_power
body._await_power = lambda *arguments: ({INTERRUPTED}, wait(*arguments))[1]
"""


@pytest.mark.parametrize("patch", [WHILE_LOADING, WHILE_FINDING], ids=["loading", "looking for the duck"])
def test_ctrl_c_before_the_rise_ends_a_drive_that_never_moved(
    launch: Launch, duck: EmulatedDuck, patch: str
) -> None:
    before = duck.goals
    code, out, err = launch(patch=patch).finish()
    assert code == 130
    assert "stopped: SIGINT received" in out + err and "Traceback" not in err and "rise" not in err
    assert (duck.goals == before).all() and not duck.torque.any()


def test_ctrl_c_ends_the_wait_for_the_servos_power(launch: Launch, duck: EmulatedDuck) -> None:
    duck.filter = lambda reply: None
    run = launch("--wait", "1000")
    assert "waiting for the servos' power" in run.line()
    run.process.send_signal(signal.SIGINT)
    code, out, err = run.finish()
    assert (code, out) == (130, "")
    assert err.startswith("stopped: SIGINT received while no device on")


def test_a_duck_that_gets_power_late_is_driven_without_a_restart(launch: Launch, duck: EmulatedDuck) -> None:
    duck.filter = lambda reply: None
    run = launch(
        "--wait", "1000", "--seconds", "0.2", patch="from firmware_bridge.robot import body; body.BOOT_S = 0"
    )
    assert "waiting for the servos' power" in run.line()
    duck.filter = None
    assert run.finish()[0] == 0


def test_a_signal_while_rising_is_obeyed_before_the_rise_is_over(launch: Launch, duck: EmulatedDuck) -> None:
    run = launch(patch="poses.RISE_S = 1e9")
    run.wait_for("rise")
    run.process.send_signal(signal.SIGTERM)
    assert run.finish()[0] == 143
    assert not duck.torque.any()


ERROR_AT_TICK_50 = """
from firmware_bridge.skills.bundle import Bundle
calls = []
def act(self, observation, skill, act=Bundle.act):
    calls.append(1)
    return act(self, observation, skill) if len(calls) < 52 else 1 / 0  # two calls warm up
Bundle.act = act
"""


def test_an_error_at_tick_50_leaves_the_duck_limp_and_shows_itself(
    launch: Launch, duck: EmulatedDuck
) -> None:
    run = launch(patch=ERROR_AT_TICK_50)
    run.wait_for("run")
    assert duck.torque.all()
    code, _, err = run.finish()
    assert code == 1
    assert "fault: an error ended the loop" in err and "Traceback" not in err
    assert err.endswith(
        "internal error: ZeroDivisionError: division by zero; --debug shows where it came from\n"
    )
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
    launch: Launch,
    duck: EmulatedDuck,
    place: Path,
    draft: Any,
    make_model: Callable[..., onnx.ModelProto],
    *,
    nodes: Any,
    message: str,
) -> None:
    draft.model = model_of_ramp(make_model, *nodes)
    code, out, err = launch(bundle=draft.write(place / "b")).finish()
    assert code == 4
    assert message in out and "Traceback" not in err
    assert "driven       0.4" in out
    assert not duck.torque.any()


IMPATIENT_ONCE_IT_RUNS = """
from firmware_bridge.drive import modes
change = modes.ModeMachine.change
def changed(self, mode, reason):
    if mode is modes.Mode.RUN:
        transport.HOST_MARGIN_S, transport.ACK_MARGIN_S = 0.01, 0.005
    change(self, mode, reason)
modes.ModeMachine.change = changed
"""


def test_a_bus_that_falls_silent_ends_in_a_fault_that_warns_of_torque(
    launch: Launch, duck: EmulatedDuck
) -> None:
    run = launch(patch=IMPATIENT_ONCE_IT_RUNS)
    run.wait_for("run")
    duck.filter = lambda reply: None
    code, out, _ = run.finish()
    assert code == 4
    assert "no sample for" in out and "torque may be on, switch the servos' power off" in out
    assert not duck.torque.any()  # the one packet that needs no answer got through


def test_a_duck_that_falls_goes_limp_with_its_own_exit_code(launch: Launch, duck: EmulatedDuck) -> None:
    run = launch()
    run.wait_for("run")
    duck.set_imu(np.zeros(3), np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]))  # on its side
    code, out, _ = run.finish()
    assert code == 3
    assert "fallen: the trunk" in out
    assert not duck.torque.any()


def test_a_drive_without_streams_goes_its_way(launch: Launch, duck: EmulatedDuck, place: Path) -> None:
    closed = "for descriptor in range(3): os.close(descriptor)\nsys.stdin = sys.stdout = sys.stderr = None"
    run = launch("--seconds", "0.2", "--report", str(place / "s.json"), patch=closed)
    assert run.finish() == (0, "", "")
    assert json.loads((place / "s.json").read_text())["mode"] == "stopped"


def test_the_end_of_a_drive_is_told_by_its_code_even_if_nobody_reads_the_table(
    launch: Launch, duck: EmulatedDuck
) -> None:
    run = launch()
    run.wait_for("run")
    run.process.stdout.close()
    duck.set_imu(np.zeros(3), np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]))
    assert "Traceback" not in run.process.stderr.read()
    assert run.process.wait() == 3


IMPORTS = """
from firmware_bridge.drive import loop
drive = loop.run
def run(*arguments):
    before = set(sys.modules)
    summary = drive(*arguments)
    print("imported:", sorted(set(sys.modules) - before))
    return summary
loop.run = run
"""


def test_nothing_is_imported_once_the_loop_runs_since_that_would_hold_it_up(launch: Launch) -> None:
    code, out, _ = launch("--seconds", "0.2", patch=IMPORTS).finish()
    assert code == 0
    assert out.startswith("imported: []\n")
