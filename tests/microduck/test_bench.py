import os
import subprocess
import sys

from microduck.bench.rates import bench
from microduck.learning.config import TrainConfig


def test_the_benchmark_compares_stepping_and_training_with_bare_physics():
    seen = []
    config = TrainConfig(num_envs=16, steps=2, minibatches=1, epochs=1, threads=1)
    rates = bench(config, 1, seen.append)
    assert [rate.name for rate in rates] == [
        "bare Batch.step",
        "environment alone",
        "environment with diagnostics",
        "training (collect and learn)",
    ]
    assert rates[0].of_reference == 1.0
    assert all(rate.steps_per_s > 0 for rate in rates)
    # With few ducks the environment costs more than the physics, and learning more again.
    assert rates[3].of_reference < rates[1].of_reference < 1.0
    assert seen == [0, 1]


def test_torchs_idle_threads_sleep_unless_the_user_says_otherwise():
    code = "import os, microduck; print(os.environ['OMP_WAIT_POLICY'])"
    for given, wanted in (({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")):
        clean = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
        told = subprocess.run(
            [sys.executable, "-c", code], env=clean | given, capture_output=True, text=True, check=True
        )
        assert told.stdout.strip() == wanted
