"""One duck in MuJoCo whose servos can be limp, as a bus would see it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import mujoco
import numpy as np
import torch

from hardware import rotations, servo
from hardware.joints import NUM_JOINTS
from microduck.physics import xl330
from microduck.physics.model import load_model
from microduck.physics.model_parts import STAND_KEY
from microduck.physics.options import PhysicsOptions
from microduck.physics.servo_bank import ServoBank
from microduck.physics.servo_model import MAX_DELAY_S, past_commands
from microduck.physics.single import SingleModel
from microduck.physics.xl330_bank import make_servos

STEP_S = 0.005
"""Physics step [s]. The one policies are trained with: a virtual duck differs from training by its bus alone.
A step that a read ends is shorter; see `microduck.live_duck`."""
HELD_ABOVE_M = 0.02
"""How much higher than it stands a hand holds the duck [m], so that its soles hang clear of the floor."""
_HAND_INERTIA = 1e6
"""Inertia that a hand adds to the trunk [kg, kg m2]: joints move as on a fixed base, the trunk not at all."""
_ROUNDING = 1e-6
"""Part of a step by which a whole number of them may be off."""
_ONLY = torch.tensor([0])


@dataclass(frozen=True)
class BodyOptions:
    """What the servos of a virtual duck are like; see `microduck.physics.servo_bank.ServoBank`.

    Attributes:
        actuator: "position" for the servo that policies are trained with by default, or "xl330".
        voltage: of the battery without load [V].
        sag: voltage lost for each newton metre of all servos together [V/(N m)].
        delay: time from a goal to its effect, besides what the bus takes [s]; whole steps, rounded up.
        friction_scale: factor of the friction that does not depend on speed.
        gain_scale: factor of the stiffness that a value of the P register gives.

    Raises:
        ConfigError: there is no such actuator.
    """

    actuator: str = "position"
    voltage: float = servo.NOMINAL_VOLTAGE
    sag: float = 0.0
    delay: float = 0.0
    friction_scale: float = 1.0
    gain_scale: float = 1.0

    def __post_init__(self) -> None:
        PhysicsOptions(actuator=self.actuator)


class VirtualBody:
    """The duck's body, stepped by hand. At first it stands in the air as in the STAND keyframe, limp.

    Args:
        options: what its servos are like.

    Attributes:
        model: the compiled duck.
        data: its state.
        fields: both as a batch of one, for writers of model fields.

    Raises:
        ConfigError: a value is out of range, or the actuator cannot have it.
    """

    def __init__(self, options: BodyOptions = BodyOptions()) -> None:
        physics = PhysicsOptions(timestep=STEP_S, body_contacts=True, actuator=options.actuator)
        self.model = load_model(physics)
        self.data = mujoco.MjData(self.model)
        self.stand_height = float(self.model.keyframe(STAND_KEY).qpos[2])
        self._options = options
        self._pinned: np.ndarray | None = None
        mujoco.mj_resetDataKeyframe(self.model, self.data, self.model.keyframe(STAND_KEY).id)
        self.data.history[past_commands(self.model)] = self.position[:, None]
        self.fields = SingleModel(self.model, self.data)
        self._servos = make_servos(self.fields, physics)
        for name in ("voltage", "sag", "friction_scale"):
            getattr(self._servos, name)[:] = getattr(options, name)
        self._servos.delay[:] = _age_of_command(options.delay)
        self._servos.apply(_ONLY)
        self.set_servos(np.zeros(NUM_JOINTS, bool), self.position, np.zeros(NUM_JOINTS))
        mujoco.mj_forward(self.model, self.data)

    def set_servos(self, torque: np.ndarray, goals: np.ndarray, p_gains: np.ndarray) -> None:
        """Set what the servos do in the next steps.

        A servo without torque is limp. As "position" it keeps damping and friction; as "xl330" it has no
        current, and only its gearbox rubs.

        Args:
            torque: whether each has torque, (14,) bool.
            goals: goal positions, (14,) [rad].
            p_gains: position P registers, (14,).
        """
        if self._options.actuator == "xl330":
            # Without this "damping" MuJoCo's motor applies its own back-EMF, so that no current flows.
            self.model.actuator_gainprm[:, 6] = np.where(torque, xl330.BACK_EMF_DAMPING, 0.0)
        gains = torch.from_numpy(np.where(torque, p_gains * self._options.gain_scale, 0.0))
        if not torch.equal(gains, self._servos.p_gain[0]):
            self._servos.p_gain[0] = gains
            self._servos.apply(_ONLY)
        # What a limp servo hears is forgotten when it gets torque.
        self.data.ctrl[:] = np.where(torque, goals, self.position)

    def step(self, lasts: float = STEP_S) -> None:
        """Let a time [s] pass."""
        self.model.opt.timestep = lasts
        mujoco.mj_step(self.model, self.data)
        self._servos.feel()
        self._pin()

    def hold(self) -> None:
        """Take the trunk, put it upright a little above where it would stand, and keep it there."""
        x, y = self.data.qpos[:2]
        self._pinned = np.array([x, y, self.stand_height + HELD_ABOVE_M, 1.0, 0.0, 0.0, 0.0])
        self.model.dof_armature[:6] = _HAND_INERTIA
        self._pin()

    def let_go(self) -> None:
        """Put the trunk down to standing height and leave it to itself, at rest."""
        if self._pinned is not None:
            self._pinned[2] = self.stand_height
        self._pin()
        self._pinned = None
        self.model.dof_armature[:6] = 0.0

    def _pin(self) -> None:
        if self._pinned is not None:
            self.data.qpos[:7] = self._pinned
            self.data.qvel[:6] = 0.0

    @property
    def position(self) -> np.ndarray:
        """Joint angles, (14,) [rad]."""
        return self.data.qpos[7:]

    @property
    def velocity(self) -> np.ndarray:
        """Joint speeds, (14,) [rad/s]."""
        return self.data.qvel[6:]

    @property
    def current(self) -> np.ndarray:
        """Servo currents, (14,) [A]."""
        return self.data.actuator_force / servo.TORQUE_CONSTANT

    @property
    def servos(self) -> ServoBank:
        """The table of its servos, a batch of one; its P gains are those last set."""
        return self._servos

    @property
    def voltage(self) -> float:
        """What the battery gives under the present load [V]."""
        return float(self._servos.supply()[0])

    @property
    def angular_velocity(self) -> np.ndarray:
        """Turn rate of the trunk, as site `imu` measures it in trunk axes, (3,) [rad/s]."""
        return self.data.qvel[3:6]

    @property
    def orientation(self) -> np.ndarray:
        """Quaternion (w, x, y, z) that turns trunk vectors, and those of site `imu`, into the world."""
        return self.data.qpos[3:7]

    @property
    def height(self) -> float:
        """Height of the trunk's origin above the floor [m]."""
        return float(self.data.qpos[2])

    @property
    def tilt(self) -> float:
        """Angle between the trunk's z axis and the vertical [rad]."""
        gravity = rotations.projected_gravity(self.orientation)
        return float(np.arccos(np.clip(-gravity[2], -1.0, 1.0)))


def _age_of_command(delay: float) -> float:
    """Return how old a command must be to take effect after whole steps of about `STEP_S` [s].

    Half a step less than the delay: else a step that lasts a little less would add a whole one to it.
    """
    if not 0 < delay <= MAX_DELAY_S:
        return delay  # none, or one that is refused
    return STEP_S * (ceil(delay / STEP_S - _ROUNDING) - 0.5)
