"""Processes that train together."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from export.cli import main
from microduck.learning.log import read_log
from microduck.learning.ranks import ALONE, Ranks, joined
from microduck.learning.run_folder import RunFolder
from microduck.physics.threads import usable_cpus


def test_a_process_alone_averages_nothing():
    weight = torch.zeros(2, requires_grad=True)
    weight.grad = torch.tensor([1.0, -3.0])
    ALONE.average_gradients([weight])
    assert weight.grad.tolist() == [1.0, -3.0]
    value = torch.tensor([2.0, 5.0])
    assert torch.equal(ALONE.sum(value), value) and torch.equal(ALONE.mean(value), value)
    assert ALONE.from_first(0.1) == 0.1
    assert ALONE.agree(True) and not ALONE.agree(False)


def test_the_moments_of_rows_are_those_of_the_population():
    count, mean, variance = ALONE.moments(torch.tensor([[[1.0, 0.0], [3.0, 0.0]], [[5.0, 0.0], [7.0, 4.0]]]))
    assert (count, mean.tolist(), variance.tolist()) == (4, [4.0, 1.0], [5.0, 3.0])


def test_without_torchrun_a_process_is_alone():
    with joined() as ranks:
        assert (ranks.rank, ranks.count, ranks.first) == (0, 1, True)


def test_processes_on_one_machine_share_its_cpus():
    assert Ranks(neighbours=1).cpus == usable_cpus()
    assert Ranks(neighbours=usable_cpus()).cpus == 1
    assert Ranks(neighbours=10**6).cpus == 1


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Folders that `two_processes.py` has trained in, and what it said."""
    program, folder = Path(__file__).with_name("two_processes.py"), tmp_path_factory.mktemp("two")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    options = ["--num-envs", "32", "--steps", "8", "--minibatches", "2", "--transitions", "1024"]
    command = [*torchrun, program, folder / "faulty", folder / "command", *options]
    done = subprocess.run(command, cwd=program.parents[2], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stderr)
    return folder, done.stdout


def test_two_processes_learn_what_one_learns_from_all_the_data_and_drop_what_either_drops(trained):
    # What it compares itself has passed. Process 0 alone has written; the batch that was undone has no row.
    run = RunFolder(trained[0] / "faulty")
    assert [(row.transitions, row.dropped, row.undone) for row in read_log(run.log_file)] == [
        (1024, 1, 1),
        (1536, 1, 1),
    ]
    assert run.checkpoint({})[0]["transitions"] == 1536


@pytest.mark.usefixtures("no_curves")
def test_one_process_can_go_on_with_what_two_trained_by_command(trained):
    folder, told = trained
    assert told.count("trained 1,024 transitions") == 1
    run = RunFolder(folder / "command")
    assert [row.transitions for row in read_log(run.log_file)] == [512, 1024]
    assert main(["resume", str(run.path), "--transitions", "1280"]) == 0
    assert [row.transitions for row in read_log(run.log_file)] == [512, 1024, 1280]
