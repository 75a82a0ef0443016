from __future__ import annotations

import os
import signal

import pytest

from firmware_bridge.drive.signals import StopSignals

NAMES = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGUSR1", "SIGALRM"]


@pytest.mark.parametrize("name", NAMES)
def test_a_signal_is_noted_instead_of_ending_the_process(name: str) -> None:
    with StopSignals() as signals:
        assert signals.reason() is None
        os.kill(os.getpid(), signal.Signals[name])
        assert signals.reason() == f"{name} received"


def test_the_first_of_many_signals_counts() -> None:
    with StopSignals() as signals:
        for name in ("SIGTERM", "SIGINT", "SIGINT"):
            os.kill(os.getpid(), signal.Signals[name])
    assert signals.received is signal.SIGTERM


def test_afterwards_signals_do_what_they_did_before() -> None:
    before = [signal.getsignal(signal.Signals[name]) for name in NAMES]
    with StopSignals():
        assert [signal.getsignal(signal.Signals[name]) for name in NAMES] != before
    assert [signal.getsignal(signal.Signals[name]) for name in NAMES] == before


def test_a_closed_terminal_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
        assert signals.received is None
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("name", ["SIGTTOU", "SIGTTIN"])
def test_a_terminal_cannot_suspend_a_drive_in_the_background(name: str) -> None:
    with StopSignals() as signals:
        os.kill(os.getpid(), signal.Signals[name])  # would stop this process for ever
        assert signals.reason() is None


@pytest.mark.parametrize(
    ("names", "hurry"),
    [
        (["SIGINT"], False),
        (["SIGINT", "SIGINT"], True),
        (["SIGTERM", "SIGINT"], True),
        (["SIGHUP", "SIGTERM", "SIGHUP"], False),  # a terminal closes while the system goes down
        (["SIGINT", "SIGTERM"], False),
    ],
)
def test_only_ctrl_c_after_a_first_signal_means_at_once(names: list[str], hurry: bool) -> None:
    with StopSignals() as signals:
        for name in names:
            os.kill(os.getpid(), signal.Signals[name])
        assert signals.hurry() is hurry
