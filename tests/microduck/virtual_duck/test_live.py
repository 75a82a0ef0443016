"""A duck whose body fails while the bus is being read."""

import numpy as np
import pytest

from firmware_bridge.wire.protocol import Instruction, Packet
from microduck.live_duck import LiveDuck


class Failing:
    """Both a bus and what lives on it; no step of it succeeds."""

    goals = np.zeros(14)

    def __init__(self, error):
        self._error = error

    def step(self, lasts, goals):
        raise self._error


@pytest.mark.parametrize("error", [BrokenPipeError("nobody reads"), ValueError("a bad number")])
def test_an_error_in_the_bus_thread_comes_out_of_the_programs_own(error):
    now = [0.0]
    duck = Failing(error)
    live = LiveDuck(duck, duck, clock=lambda: now[0])
    now[0] = 0.004
    live.hear(Packet(1, Instruction.READ, b""))
    with pytest.raises(type(error), match=str(error)):
        live.live()
