"""The search on gaps that are formulas: where the least lies is known."""

import pytest
import torch

from microduck.randomization.twin import Twin
from microduck.replay.causes import CAUSES
from microduck.replay.search import Trial, begin, go_on

BY_PARAMETER = {(cause.parameter, cause.component): cause for cause in CAUSES}
DELAY, GAIN = BY_PARAMETER["delay", 0], BY_PARAMETER["p_gain_scale", 0]
KNEE, ANKLE = BY_PARAMETER["encoder_offset", 3], BY_PARAMETER["encoder_offset", 4]
START = torch.tensor(Twin().numbers(), dtype=torch.float64)


def bowl(**truth):
    """A gap that is least where the named causes have their true values."""
    causes = {"delay": (DELAY, 0.01), "gain": (GAIN, 0.2), "knee": (KNEE, 0.02), "ankle": (ANKLE, 0.02)}

    def gauge(ducks):
        total = torch.full((len(ducks),), 0.3, dtype=torch.float64)
        for name, value in truth.items():
            cause, width = causes[name]
            total += ((ducks[:, cause.column] - value) / width) ** 2
        return total

    return gauge


def searched(gauge):
    found = begin(START, CAUSES, gauge, noise=1.0)
    go_on(found, CAUSES, gauge, noise=1.0)
    return {finding.cause: finding.value for finding in found.findings}, found


def test_one_cause_is_found_between_the_values_tried_first():
    values, found = searched(bowl(delay=0.017))
    assert values.keys() == {DELAY}
    assert values[DELAY] == pytest.approx(0.017, abs=0.0005)
    assert found.start == pytest.approx(0.3 + 1.7**2)


def test_a_value_beyond_those_tried_first_is_found():
    values, _ = searched(bowl(ankle=0.07))
    assert values == {ANKLE: pytest.approx(0.07, abs=0.005)}


def test_several_causes_are_found_one_after_the_other():
    values, _ = searched(bowl(delay=0.03, knee=-0.05, gain=0.7))
    assert values.keys() == {DELAY, KNEE, GAIN}
    assert values[DELAY] == pytest.approx(0.03, abs=0.001)
    assert values[KNEE] == pytest.approx(-0.05, abs=0.005)
    assert values[GAIN] == pytest.approx(0.7, abs=0.05)


def test_noise_is_left_alone():
    values, found = searched(bowl(delay=0.005))
    assert values == {}
    assert found.size == found.start < 1.0


def test_what_explains_a_tenth_is_no_cause():
    weak = bowl(delay=0.02)
    values, found = searched(lambda ducks: 40 + weak(ducks))
    assert values == {}
    assert found.size == found.start


def test_a_rival_that_explains_as_much_is_told():
    def gauge(ducks):
        return 1 + (ducks[:, KNEE.column] + ducks[:, ANKLE.column] - 0.04).abs() * 1000

    found = begin(START, CAUSES, gauge, noise=1.5)
    (finding,) = found.findings
    assert {finding.cause, *finding.rivals} == {KNEE, ANKLE}


def test_a_small_difference_is_fitted_but_is_no_cause():
    _, found = searched(lambda ducks: 2 + 3 * ((ducks[:, GAIN.column] - 1.05) / 0.05) ** 2)
    (finding,) = found.findings
    assert finding.value == pytest.approx(1.05, abs=0.01)
    assert not finding.matters


def test_the_next_value_never_leaves_what_a_duck_can_be():
    trial = Trial(DELAY, {0.02: 3.0, 0.03: 2.0, 0.04: 1.0})
    assert trial.best == 0.04
    assert trial.next() == 0.04  # models have room for no more


def test_a_gap_that_bends_the_other_way_leads_on_downhill():
    trial = Trial(ANKLE, {-0.04: 3.0, 0.0: 2.9, 0.04: 1.0})
    assert trial.next() == pytest.approx(0.08)
