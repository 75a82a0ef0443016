import os
import subprocess
import sys

import pytest

from microduck.bench import against_torchrl, rates, scaling
from microduck.cli.bench import _write
from microduck.learning.config import TrainConfig


def test_rates_are_medians_of_rounds_compared_within_each_round(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(rates.time, "perf_counter", lambda: now[0])

    def taking(*seconds):
        left = list(seconds)

        def run():
            now[0] += left.pop(0)

        return run

    seen = []
    # The first round does not count. The machine is half as fast in the third.
    cases = {"bare": taking(9.0, 1.0, 2.0, 1.0), "ours": taking(0.1, 2.0, 4.0, 3.0)}
    found = rates.compare(cases, {"bare": 100, "ours": 50}, "bare", 3, seen.append)
    assert [(rate.name, rate.steps_per_s, rate.of_reference) for rate in found] == [
        ("bare", 100.0, 1.0),
        ("ours", pytest.approx(50 / 3), pytest.approx(0.25)),
    ]
    assert seen == [0, 1, 2, 3]


def test_the_benchmark_steps_and_trains():
    config = TrainConfig(num_envs=16, steps=2, minibatches=1, epochs=1, threads=1)
    found = rates.bench(config, 1)
    assert [rate.name for rate in found] == [
        "bare Batch.step",
        "environment alone",
        "environment with diagnostics",
        "environment with XL330 servos, randomised",
        "training (collect and learn)",
        "training with XL330 servos, randomised",
    ]
    assert found[0].of_reference == 1.0
    assert all(rate.steps_per_s > 0 for rate in found)


def test_torchrl_and_ours_are_run_on_one_model(monkeypatch):
    monkeypatch.setattr(against_torchrl, "_settings", lambda: [against_torchrl.Setting(1, False)])
    monkeypatch.setattr(against_torchrl, "DUCKS", 4)
    monkeypatch.setattr(against_torchrl, "STEPS", 2)
    monkeypatch.setattr(against_torchrl, "TRIAL_STEPS", 2)
    monkeypatch.setattr(against_torchrl, "PEER_SECONDS", 0.0)
    found = against_torchrl.against_torchrl(1)
    assert [rate.name for rate in found] == [
        "TorchRL, one duck",
        "ours, the same model and substeps",
        "ours, at its own defaults",
        "bare Batch.step, the same model",
        "bare Batch.step, at our defaults",
    ]
    assert found[0].of_reference == 1.0
    assert against_torchrl.Setting(4, True).name == "TorchRL, 4 ducks in as many processes"


def test_growth_is_measured_in_time_and_in_memory_of_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(scaling, "COUNTS", (2, 256))
    monkeypatch.setattr(scaling, "STEPS", 512)
    few, many = scaling.scaling(1)
    assert (few.count, many.count) == (2, 256)
    assert few.step_s > 0
    assert many.memory > few.memory > 0  # 256 ducks hold a few MiB more than two


def test_tables_are_written_for_a_readme(tmp_path):
    path = tmp_path / "new" / "bench.md"
    _write(path, [("growth", ["ducks", "ms"], [["64", "5.1"], ["256", "17.2"]])])
    assert path.read_text().split("\n\n", 1)[1] == (
        "**Growth**\n\n| ducks | ms |\n| --- | ---: |\n| 64 | 5.1 |\n| 256 | 17.2 |\n"
    )


def test_torchs_idle_threads_sleep_unless_the_user_says_otherwise():
    code = "import os, microduck; print(os.environ['OMP_WAIT_POLICY'])"
    for given, wanted in (({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")):
        clean = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
        told = subprocess.run(
            [sys.executable, "-c", code], env=clean | given, capture_output=True, text=True, check=True
        )
        assert told.stdout.strip() == wanted
