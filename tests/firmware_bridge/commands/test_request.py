from __future__ import annotations

import threading

import pytest

from firmware_bridge.commands.request import Event, Events


def test_an_event_is_handed_out_once() -> None:
    events = Events()
    events.put(Event.SIT)
    events.put(Event.SIT)
    assert [events.take(), events.take()] == [Event.SIT, None]


def test_the_most_urgent_comes_first_and_the_others_follow() -> None:
    events = Events()
    for event in (Event.SIT, Event.QUIT, Event.LIMP):
        events.put(event)
    assert [events.take() for _ in range(4)] == [Event.LIMP, Event.QUIT, Event.SIT, None]


@pytest.mark.parametrize("stop", [Event.SIT, Event.LIMP, Event.QUIT])
def test_whatever_ends_motion_revokes_a_start_that_waits(stop: Event) -> None:
    for pair in ((Event.START, stop), (stop, Event.START)):
        events = Events()
        for event in pair:
            events.put(event)
        assert [events.take(), events.take()] == [stop, None]


def test_no_event_of_another_thread_is_lost() -> None:
    events, taken = Events(), []
    done = threading.Event()

    def fill() -> None:
        for _ in range(2000):
            events.put(Event.LIMP)
        done.set()
        events.put(Event.QUIT)

    thread = threading.Thread(target=fill)
    thread.start()
    while thread.is_alive() or not done.is_set():
        taken.append(events.take())
    taken += [events.take() for _ in range(3)]
    assert Event.LIMP in taken
    assert taken.count(Event.QUIT) == 1
