"""What the sensors of a duck say in place of the truth."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from hardware import rotations
from hardware.joints import NUM_JOINTS

SIGNALS = {
    "angular_velocity": 3,
    "projected_gravity": 3,
    "joint_velocity": NUM_JOINTS,
    "joint_error": NUM_JOINTS,
}
"""What is measured, and how wide: the first two by the IMU, the others by the servos."""
WIDTH = sum(SIGNALS.values())
_GRAVITY = slice(3, 6)


class Sensing:
    """Disturbs the measurements of a batch of ducks: mounting, then lateness, then offset and noise.

    Args:
        count: number of ducks; undisturbed until `write`.
        generator: draws the noise; its device is that of all tensors.

    Attributes:
        before: what was measured a control period ago but for offset and noise, (count, WIDTH).
    """

    def __init__(self, count: int, generator: torch.Generator) -> None:
        device = generator.device
        self._generator = generator
        self._to_imu = torch.eye(3, device=device).repeat(count, 1, 1)
        self._late, self._shift, self._noise, self.before = (
            torch.zeros(count, WIDTH, device=device) for _ in range(4)
        )

    def write(self, ids: Tensor, values: Mapping[str, Tensor]) -> None:
        """Take over the properties of ducks `ids` (k,), by name, (k,) or (k, width) each."""
        self._to_imu[ids] = _to_imu_axes(values["imu_mounting"])
        zero = torch.zeros_like(values["imu_lateness"])
        late = values["imu_lateness"], values["imu_lateness"], values["joint_velocity_lateness"], zero
        shift = values["gyro_bias"], zero, zero, values["encoder_offset"]
        noise = [values[f"{name}_noise"] for name in ("gyro", "gravity", "joint_velocity", "joint_position")]
        for table, parts in ((self._late, late), (self._shift, shift), (self._noise, noise)):
            table[ids] = _row(parts)

    def begin(self, ids: Tensor, truth: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the first measurements of ducks `ids` (k,) in an episode; see `measure`."""
        now = self._now(truth, self._to_imu[ids])
        self.before[ids] = now
        return self._disturbed(now, now, ids)

    def measure(self, truth: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return what the sensors of all ducks say, `SIGNALS` by name; each call is a control period.

        A measurement some part of a period old lies that far on the way to the one before.

        Args:
            truth: the same signals as they are, in trunk axes.
        """
        now = self._now(truth, self._to_imu)
        told = self._disturbed(now, self.before, slice(None))
        self.before = now
        return told

    def _now(self, truth: Mapping[str, Tensor], to_imu: Tensor) -> Tensor:
        imu = torch.stack([truth["angular_velocity"], truth["projected_gravity"]], dim=-2) @ to_imu
        return torch.cat([imu.flatten(-2), truth["joint_velocity"], truth["joint_error"]], dim=-1)

    def _disturbed(self, now: Tensor, before: Tensor, rows: Tensor | slice) -> dict[str, Tensor]:
        told = torch.lerp(now, before, self._late[rows])
        told += self._shift[rows]
        told.addcmul_(self._noise[rows], self._signed(told))
        # The robot takes the direction from a rotation, so it has length 1 whatever the noise.
        told[:, _GRAVITY] = torch.nn.functional.normalize(told[:, _GRAVITY], dim=-1)
        return dict(zip(SIGNALS, told.split(list(SIGNALS.values()), dim=-1), strict=True))

    def _signed(self, like: Tensor) -> Tensor:
        drawn = torch.rand(like.shape, generator=self._generator, device=like.device)
        return drawn.mul_(2).sub_(1)


def quaternion(vector: Tensor) -> Tensor:
    """Return the quaternions (w, x, y, z), (..., 4), of rotation vectors (..., 3) [rad]."""
    half = 0.5 * vector.norm(dim=-1, keepdim=True)
    return torch.cat([half.cos(), 0.5 * torch.sinc(half / torch.pi) * vector], dim=-1)


def _to_imu_axes(mounting: Tensor) -> Tensor:
    """Return matrices (k, 3, 3) that bring row vectors from trunk to IMU axes; see `imu_mounting`."""
    axes = torch.eye(3, device=mounting.device)
    return rotations.rotate_inverse(quaternion(mounting).unsqueeze(-2), axes)


def _row(parts: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    """Return rows (k, WIDTH) of a part for each signal: (k,) for all of its columns, or (k, width)."""
    wide = [
        part.unsqueeze(-1).expand(-1, width) if part.ndim == 1 else part
        for part, width in zip(parts, SIGNALS.values(), strict=True)
    ]
    return torch.cat(wide, dim=-1)
