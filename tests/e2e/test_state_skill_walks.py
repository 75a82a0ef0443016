"""A skill of layout `state`, which needs the trunk's velocity, walks through `duck run` on an estimate."""

import numpy as np

from firmware_bridge.drive.controller import Controller
from firmware_bridge.estimate.velocity import VelocityEstimator
from firmware_bridge.robot.body import BodySample
from firmware_bridge.skills.bundle import load_bundle
from hardware import contract, rotations
from hardware.joints import STAND
from microduck.virtual_body import STEP_S, VirtualBody


class Still(VelocityEstimator):
    """Takes the trunk to stand still."""

    def update(self, sample: BodySample, periods: int) -> np.ndarray:
        return self.velocity


def speed(folder, estimator: VelocityEstimator) -> float:
    """Return how far a simulated duck walks in a second of four, told to go at 0.15 m/s [m/s]."""
    bundle, body, gains = load_bundle(folder), VirtualBody(), np.full(14, 200)
    controller = Controller(bundle, bundle.skill("walk"))
    controller.estimator = estimator
    body.set_servos(np.ones(14, bool), STAND, gains)
    for _ in range(200):
        gravity = rotations.projected_gravity(body.orientation)
        moving = body.velocity.copy(), body.current, body.angular_velocity.copy()
        sample = BodySample(0.0, body.position.copy(), *moving, gravity, ())
        controller.advance(np.array([0.15, 0.0, 0.0]), np.zeros(4), sample, 1)
        body.set_servos(np.ones(14, bool), controller.targets(sample), gains)
        for _ in range(round(contract.CONTROL_PERIOD_S / STEP_S)):
            body.step()
    assert body.tilt < 0.4
    return float(np.hypot(*body.data.qpos[:2])) / 4.0


def test_the_walker_goes_as_fast_as_it_is_told_because_it_knows_how_fast_it_goes(state_walker_folder):
    assert 0.1 < speed(state_walker_folder, VelocityEstimator()) < 0.18
    assert speed(state_walker_folder, Still()) > 0.21


def test_a_state_skill_walks_a_virtual_duck_without_falling(state_walker_folder, driven):
    walk, told = driven(str(state_walker_folder), "--command", "0.15", "0", "0")
    assert not walk["fell"]
    assert walk["seconds"] > 4.9
    # A velocity of nothing would have it walk at the 0.3 m/s it can, one too high would let it stand.
    assert 0.09 < walk["mean_speed_mps"] < 0.2
    assert told["policy_ticks"] >= 240
