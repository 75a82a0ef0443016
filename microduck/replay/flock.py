"""The ducks of a replay: one for each window and each kind of duck that is tried, all stepped together."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hardware import rotations, servo
from hardware.joints import STAND
from microduck.physics.model_parts import FOOT_GEOMS
from microduck.physics.native import NativePhysics
from microduck.physics.options import PhysicsOptions
from microduck.randomization.model_fields import ModelFields
from microduck.randomization.parameters import PLACES, named
from microduck.randomization.sensing import Sensing, quaternion
from microduck.randomization.servo_fields import SERVO_PARAMETERS, SUPPLY_PARAMETERS, ServoFields
from microduck.randomization.twin import Twin
from microduck.virtual_body import STEP_S

_START_M = 0.3
"""Where a duck hangs while it is found out how high its soles are [m]."""
_GLANCE_S = 1e-3
"""Time over which a foot's speed is taken [s]."""


@dataclass(frozen=True)
class Servos:
    """What the servos of all ducks have in common.

    Attributes:
        actuator: one of `microduck.physics.options.ACTUATORS`.
        p_gain: position P register.
    """

    actuator: str = "position"
    p_gain: float = float(servo.POSITION_P_GAIN)


class Flock:
    """Ducks in MuJoCo, as `VirtualBody` has one.

    Args:
        values: what each duck is, (n, COLUMNS); see `microduck.randomization.parameters`.
        servos: what they have in common.
    """

    def __init__(self, values: Tensor, servos: Servos) -> None:
        options = PhysicsOptions(timestep=STEP_S, body_contacts=True, actuator=servos.actuator)
        self._ids, values_by_name = torch.arange(len(values)), named(values)
        self._physics = physics = NativePhysics(len(values), options)
        physics.substeps = 1  # a delayed target takes force between two control periods
        self._geoms = physics.derived("geom_xpos"), physics.derived("geom_xmat")
        self._lasts = physics.expand("opt.timestep")
        nominal = torch.tensor(Twin().numbers(), dtype=torch.float64)
        varied = [name for name, place in PLACES.items() if bool((values != nominal)[:, place].any())]
        ModelFields(physics, varied).write(self._ids, values_by_name)
        physics.servos.p_gain[:] = servos.p_gain
        unknown = {"delay"} if servos.actuator == "xl330" else {"delay", *SUPPLY_PARAMETERS}
        fields = [name for name in SERVO_PARAMETERS if name not in unknown]
        ServoFields(physics.servos, STEP_S, fields).write(self._ids, values_by_name)
        self._offset = values_by_name["encoder_offset"]
        self._sensing = _without_noise(values_by_name)
        self._begun = False

    @property
    def stand(self) -> Tensor:
        """Joint angles in STAND, (14,) [rad]."""
        return torch.tensor(STAND)

    def begin(self, position: Tensor, velocity: Tensor, rate: Tensor, gravity: Tensor) -> None:
        """Put every duck on the floor as it was measured; the lower foot stands still.

        Args:
            position: joint angles as the encoders tell them, (n, 14) [rad].
            velocity: joint speeds, (n, 14) [rad/s].
            rate: turn rate of the trunk, trunk frame, (n, 3) [rad/s].
            gravity: its direction in the trunk frame, (n, 3).
        """
        count = len(self._ids)
        tilt = _turn(gravity.new_tensor([0.0, 0.0, -1.0]).expand_as(gravity), gravity)
        high = gravity.new_tensor([0.0, 0.0, _START_M]).expand(count, 3)
        pose = torch.cat([high, tilt, position - self._offset], dim=-1)
        speeds = torch.cat([torch.zeros_like(rate), rate, velocity], dim=-1)
        feet, soles = self._look(pose, speeds)
        turn = torch.cat([torch.ones(count, 1), 0.5 * _GLANCE_S * rate], dim=-1).double()
        later = pose.clone()
        later[:, 3:7] = _unit(rotations.multiply(tilt, turn))
        later[:, 7:] += _GLANCE_S * velocity
        moved, _ = self._look(later, speeds)
        lower = soles.argmin(dim=-1)
        speeds[:, :3] = -(moved - feet)[self._ids, lower] / _GLANCE_S
        pose[:, 2] -= soles.amin(dim=-1)
        self._look(pose, speeds)
        self._begun = False

    def tell(self) -> Tensor:
        """Return what the ducks measure now, `driven.SIGNALS` side by side, (n, 34); once in a period."""
        qpos, qvel = self._physics.qpos, self._physics.qvel
        truth = {
            "angular_velocity": qvel[:, 3:6],
            "projected_gravity": rotations.projected_gravity(qpos[:, 3:7]),
            "joint_velocity": qvel[:, 6:],
            "joint_error": qpos[:, 7:] - self.stand,
        }
        truth = {name: value.float() for name, value in truth.items()}
        told = self._sensing.measure(truth) if self._begun else self._sensing.begin(self._ids, truth)
        self._begun = True
        position = told["joint_error"].double() + self.stand
        rest = [told[name].double() for name in ("joint_velocity", "angular_velocity", "projected_gravity")]
        return torch.cat([position, *rest], dim=-1)

    def guide(self, rate: Tensor, gravity: Tensor) -> None:
        """Turn the trunks about the foot that stands lower.

        Args:
            rate: added to the turn rate, trunk frame, (n, 3) [rad/s].
            gravity: added to the direction of gravity in the trunk frame, (n, 3).
        """
        qpos, qvel, feet = self._physics.qpos, self._physics.qvel, self._physics.foot_positions()
        here = qpos[:, 3:7].clone()
        now = rotations.projected_gravity(here)
        turned = _unit(rotations.multiply(here, _turn(now, _unit(now + gravity))))
        pivot = feet[self._ids, feet[:, :, 2].argmin(dim=-1)] - qpos[:, :3]
        qpos[:, :3] += pivot - rotations.rotate(turned, rotations.rotate_inverse(here, pivot))
        qvel[:, :3] -= torch.linalg.cross(rotations.rotate(turned, rate), pivot)
        qpos[:, 3:7] = turned
        qvel[:, 3:6] += rate

    def step(self, shown: Tensor, lasts: Tensor) -> None:
        """Let a time of each duck's own pass, one physics step.

        Args:
            shown: where the encoders show that the servos go, (n, 14) [rad].
            lasts: the time, (n,) [s].
        """
        self._lasts.copy_(lasts.reshape(self._lasts.shape))
        self._physics.step(shown - self._offset)

    def _look(self, pose: Tensor, speeds: Tensor) -> tuple[Tensor, Tensor]:
        """Put the ducks somewhere; return their feet (n, 2, 3) and how high their soles are (n, 2) [m]."""
        physics, (centres, axes) = self._physics, self._geoms
        physics.reset(self._ids, pose, speeds)
        physics.refresh(self._ids)
        heights = []
        for name in FOOT_GEOMS:
            geom = physics.model.geom(name)
            half = torch.from_numpy(geom.size)
            reach = (axes[:, geom.id].reshape(-1, 3, 3)[:, 2].abs() * half).sum(dim=-1)
            heights.append(centres[:, geom.id, 2] - reach)
        return physics.foot_positions().clone(), torch.stack(heights, dim=-1)


def to_trunk(values: Tensor, vectors: Tensor) -> Tensor:
    """Turn vectors (n, 3) from the axes of each duck's IMU to those of its trunk."""
    return rotations.rotate(quaternion(named(values)["imu_mounting"]), vectors)


def _without_noise(values: dict[str, Tensor]) -> Sensing:
    """Return the sensors of ducks, which are as late, as tilted and as far off as theirs, but never noisy."""
    count = len(values["delay"])
    sensing = Sensing(count, torch.Generator())
    silent = {name: value * (not name.endswith("_noise")) for name, value in values.items()}
    sensing.write(torch.arange(count), {name: value.float() for name, value in silent.items()})
    return sensing


def _turn(here: Tensor, there: Tensor) -> Tensor:
    """Return the shortest turns (n, 4), in body axes, after which gravity is seen `there` and not `here`."""
    cosine = (here * there).sum(dim=-1, keepdim=True)
    return _unit(torch.cat([1.0 + cosine, torch.linalg.cross(there, here)], dim=-1))


def _unit(vectors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(vectors, dim=-1)
