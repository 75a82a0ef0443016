"""One duck in MuJoCo whose servos can be limp, as a bus would see it."""

from __future__ import annotations

import mujoco
import numpy as np

from hardware import rotations, servo
from hardware.joints import NUM_JOINTS
from microduck.physics.model import load_model
from microduck.physics.model_parts import STAND_KEY
from microduck.physics.options import PhysicsOptions

STEP_S = 0.005
"""Physics step [s]. The one policies are trained with: a virtual duck differs from training by its bus alone.
A goal waits 2.5 ms for the next step on average, about as long as a real servo's 1 kHz loop and wire take."""
_HAND_INERTIA = 1e6
"""Inertia that a hand adds to the trunk [kg, kg m2]: joints move as on a fixed base, the trunk not at all."""


class VirtualBody:
    """The duck's body, stepped by hand. At first it stands in the air as in the STAND keyframe, limp.

    Attributes:
        model: the compiled duck.
        data: its state.
    """

    def __init__(self) -> None:
        self.model = load_model(PhysicsOptions(timestep=STEP_S, body_contacts=True))
        self.data = mujoco.MjData(self.model)
        self.stand_height = float(self.model.keyframe(STAND_KEY).qpos[2])
        self._pinned: np.ndarray | None = None
        mujoco.mj_resetDataKeyframe(self.model, self.data, self.model.keyframe(STAND_KEY).id)
        self.set_servos(np.zeros(NUM_JOINTS, bool), self.position, np.zeros(NUM_JOINTS))
        mujoco.mj_forward(self.model, self.data)

    def set_servos(self, torque: np.ndarray, goals: np.ndarray, p_gains: np.ndarray) -> None:
        """Set what the servos do in the next steps.

        Args:
            torque: whether each has torque, (14,) bool; one without is limp but for its damping and friction.
            goals: goal positions, (14,) [rad].
            p_gains: position P registers, (14,).
        """
        stiffness = np.where(torque, servo.stiffness(1) * p_gains, 0.0)
        self.model.actuator_gainprm[:, 0] = stiffness
        self.model.actuator_biasprm[:, 1] = -stiffness
        self.data.ctrl[:] = goals

    def step(self) -> None:
        """Let `STEP_S` pass."""
        mujoco.mj_step(self.model, self.data)
        self._pin()

    def hold(self) -> None:
        """Take the trunk, put it upright at standing height above where it is, and keep it there."""
        x, y = self.data.qpos[:2]
        self._pinned = np.array([x, y, self.stand_height, 1.0, 0.0, 0.0, 0.0])
        self.model.dof_armature[:6] = _HAND_INERTIA
        self._pin()

    def let_go(self) -> None:
        """Leave the trunk to itself, at rest."""
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
