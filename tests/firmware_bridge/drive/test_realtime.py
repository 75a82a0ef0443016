from __future__ import annotations

import gc
import os
import re
import resource
import threading
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.drive import realtime as module
from firmware_bridge.drive.realtime import PRIORITY, quiet_collector, realtime
from hardware.errors import ConfigError


def test_the_collector_is_off_inside_and_as_before_afterwards() -> None:
    with quiet_collector():
        assert not gc.isenabled()
        assert gc.get_freeze_count() > 1000  # what exists is not looked at again
    assert gc.isenabled() and gc.get_freeze_count() == 0
    gc.disable()
    try:
        with quiet_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_collector_works_again_after_an_error() -> None:
    with pytest.raises(KeyError), quiet_collector():
        raise KeyError
    assert gc.isenabled()


class System:
    """A system whose scheduler and memory only note what they are told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scheduled: list[tuple[int, int]] = []
        self.locked: list[int] = []
        self.unlocked = 0
        self.refuses_priority = self.refuses_memory = False
        monkeypatch.setattr(os, "sched_setscheduler", self._schedule)
        monkeypatch.setattr(module, "_c_library", lambda: self)

    def _schedule(self, pid: int, policy: int, parameters: Any) -> None:
        if self.refuses_priority and parameters.sched_priority:
            raise PermissionError(1, "Operation not permitted")
        self.scheduled.append((policy, parameters.sched_priority))

    def mlockall(self, flags: int) -> int:
        self.locked.append(flags)
        return -1 if self.refuses_memory else 0

    def munlockall(self) -> int:
        self.unlocked += 1
        return 0


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return System(monkeypatch)


def test_priority_and_memory_are_taken_and_given_back(system: System) -> None:
    usual = (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority)
    with realtime():
        assert system.scheduled == [(os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, PRIORITY)]
        assert system.locked == [7]  # MCL_CURRENT, MCL_FUTURE and MCL_ONFAULT of <sys/mman.h>
    assert system.scheduled[1:] == [usual]
    assert system.unlocked == 1


def test_a_refused_priority_says_how_to_get_it_and_how_to_do_without(system: System) -> None:
    system.refuses_priority = True
    with (
        pytest.raises(
            ConfigError, match=r"no real-time priority \(Operation.*limits.d.*leave --realtime out"
        ),
        realtime(),
    ):
        pytest.fail("the block must not run")
    assert system.locked == []


def test_refused_memory_gives_the_priority_back(system: System) -> None:
    system.refuses_memory = True
    with pytest.raises(ConfigError, match="no locked memory"), realtime():
        pytest.fail("the block must not run")
    assert len(system.scheduled) == 2


def test_memory_that_may_be_locked_only_in_part_is_not_begun_with(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (65536, 8388608))
    with (
        pytest.raises(ConfigError, match=r"no locked memory \(limit 8388608 bytes\).*memlock unlimited"),
        realtime(),
    ):
        pytest.fail("the block must not run")
    assert system.locked == []


def test_this_system_either_gives_it_or_says_why_not() -> None:
    seen: list[int] = []
    try:
        with realtime():
            assert os.sched_getscheduler(0) & os.SCHED_FIFO
            locked = re.search(r"VmLck:\s+(\d+) kB", Path("/proc/self/status").read_text())
            assert locked and int(locked[1]) > 0
            thread = threading.Thread(target=lambda: seen.append(os.sched_getscheduler(0)))
            thread.start()
            thread.join()
            assert seen == [os.SCHED_OTHER]  # who prints has no claim to real time
    except ConfigError as error:
        assert "leave --realtime out" in str(error)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
