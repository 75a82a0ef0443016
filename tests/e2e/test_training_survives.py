"""`microduck train` as a user runs it: killed at any moment, and with wrong options."""

import multiprocessing
import random
import time

import pytest

from export.cli import main
from microduck.learning.log import read_log
from microduck.learning.run_folder import RunFolder

OPTIONS = ["--num-envs", "32", "--steps", "8", "--minibatches", "2", "--threads", "1"]


@pytest.fixture(scope="module")
def start():
    """Starts a command in a process of its own, from one that has imported what commands need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["export.cli.app", "microduck.learning.train"])

    def begin(*arguments):
        process = context.Process(target=main, args=(arguments,))
        process.start()
        return process

    return begin


def wait_for(happened, process):
    while not happened() and process.is_alive():
        time.sleep(0.01)


def test_a_run_killed_again_and_again_goes_on(tmp_path, start):
    run, draw, before = RunFolder(tmp_path / "run"), random.Random(), 0
    always = ["--evaluate-every-minutes", "0", "--save-every-minutes", "1e-9"]
    endless = ["--transitions", str(10**9), "--minutes", "1e6"]
    process = start("train", str(run.path), *OPTIONS, *always, *endless)
    for _ in range(3):
        wait_for(run.log_file.exists, process)
        time.sleep(draw.uniform(0.0, 1.0))
        process.kill()
        process.join()
        state = run.checkpoint({})[0]
        assert state["transitions"] >= before
        before = state["transitions"]
        process = start("resume", str(run.path))
    wait_for(lambda: run.checkpoint({})[0]["transitions"] > before, process)
    process.kill()
    process.join()
    reached = run.checkpoint({})[0]["transitions"]
    assert main(["resume", str(run.path), "--transitions", str(reached + 512)]) == 0
    rows = read_log(run.log_file)
    assert [row.transitions for row in rows] == list(range(256, reached + 513, 256))
    assert [row.seconds for row in rows] == sorted(row.seconds for row in rows)
    assert not list(run.path.glob(".*"))  # nothing half written stays


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--layout", "foo"],
            "error: observation layout 'foo' does not exist; choose one of ['sensor', 'state']",
        ),
        (["--minutes", "nan"], "error: minutes is nan; it must be above 0"),
        (["--minutes", "inf"], "error: minutes is inf; it must be above 0"),
        (["--evaluate-every-minutes", "nan"], "error: evaluate_every_minutes is nan; it must be 0 or more"),
        (["--num-envs", "0"], "error: num_envs is 0; it must be a whole number of 1 or more"),
        (["--library", "foo"], "error: 'foo' is no task library; choose one of"),
    ],
)
def test_a_wrong_option_is_named_in_plain_words(tmp_path, capsys, options, told):
    assert main(["train", str(tmp_path / "run"), *options]) == 1
    assert capsys.readouterr().err.startswith(told)
    assert not (tmp_path / "run").exists()
