"""The default number of threads follows what the machine grants to the process, not what it has."""

import os
import subprocess
import sys

import pytest

from microduck.physics.options import PhysicsOptions
from microduck.physics.threads import cgroup_limit, usable_cpus


@pytest.fixture
def machine(tmp_path):
    """Write files below a folder that stands for /, and return it."""

    def build(groups, **files):
        for name, text in {"proc/self/cgroup": groups, **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return build


def test_version_2_group_limits(machine):
    root = machine("0::/user/job\n", **{"sys/fs/cgroup/user/job/cpu.max": "250000 100000\n"})
    assert cgroup_limit(root) == 2.5


def test_ancestor_of_a_version_2_group_limits_it_too(machine):
    limits = {
        "sys/fs/cgroup/user/job/cpu.max": "max 100000\n",
        "sys/fs/cgroup/user/cpu.max": "100000 50000\n",
    }
    assert cgroup_limit(machine("0::/user/job\n", **limits)) == 2.0


def test_version_1_group_limits(machine):
    folder = "sys/fs/cgroup/cpu,cpuacct/docker/5ab"
    limits = {f"{folder}/cpu.cfs_quota_us": "400000\n", f"{folder}/cpu.cfs_period_us": "100000\n"}
    assert cgroup_limit(machine("5:memory:/m\n4:cpu,cpuacct:/docker/5ab\n", **limits)) == 4.0


@pytest.mark.parametrize("group", ["/docker/5ab", "/../../job"])
def test_limit_at_the_mount_holds_where_the_group_itself_is_not_visible(machine, group):
    assert cgroup_limit(machine(f"0::{group}\n", **{"sys/fs/cgroup/cpu.max": "300000 100000"})) == 3.0


def test_smallest_of_several_limits_holds(machine):
    limits = {
        "sys/fs/cgroup/unified/a/cpu.max": "500000 100000",
        "sys/fs/cgroup/cpu/b/cpu.cfs_quota_us": "200000",
        "sys/fs/cgroup/cpu/b/cpu.cfs_period_us": "100000",
    }
    assert cgroup_limit(machine("1:cpu:/b\n0::/a\n", **limits)) == 2.0


@pytest.mark.parametrize(
    "text", ["max 100000\n", "", "100000", "-1 100000", "5 0", "a b", "1 2 3", "\xff\xfe"]
)
def test_no_limit_and_what_is_none_are_no_limit(machine, text):
    assert cgroup_limit(machine("0::/\n", **{"sys/fs/cgroup/cpu.max": text})) is None


def test_version_1_quota_of_minus_one_is_no_limit(machine):
    folder = "sys/fs/cgroup/cpu"
    limits = {f"{folder}/cpu.cfs_quota_us": "-1\n", f"{folder}/cpu.cfs_period_us": "100000\n"}
    assert cgroup_limit(machine("1:cpu:/\n", **limits)) is None


def test_machine_without_control_groups_has_no_limit(tmp_path):
    assert cgroup_limit(tmp_path) is None


@pytest.mark.parametrize(
    ("limit", "affinity", "cpus"), [(1.5, 8, 1), (0.2, 8, 1), (3.0, 8, 3), (16.0, 2, 2), (None, 5, 5)]
)
def test_the_smaller_of_limit_and_affinity_counts_in_whole_cpus(monkeypatch, limit, affinity, cpus):
    monkeypatch.setattr("microduck.physics.threads.cgroup_limit", lambda root: limit)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(affinity)), raising=False)
    assert usable_cpus() == cpus
    assert PhysicsOptions().worker_threads() == cpus
    assert PhysicsOptions(threads=7).worker_threads() == 7


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
def test_process_bound_to_one_cpu_starts_one_thread():
    bound = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    code = f"{bound}; from microduck.physics.options import PhysicsOptions as P; print(P().worker_threads())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "1\n", done.stderr
