"""Pictures of a batch of ducks, drawn one after the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from hardware.errors import ConfigError
from microduck.env.options import EnvOptions
from microduck.physics.model import load_model
from microduck.render import Renderer, Shot


class Pictures:
    """Draws ducks; opens a graphics context at the first picture of each size and camera.

    Args:
        options: size, camera and rate of the pictures, physics of the scene.
        scene: MJCF of the duck; None for the built-in one.
    """

    def __init__(self, options: EnvOptions, scene: Path | None) -> None:
        self._options, self._scene = options, scene
        self._model: mujoco.MjModel | None = None
        self._renderers: dict[Shot, Renderer] = {}
        self._last: Tensor | None = None
        self._age = 0

    def draw(self, qpos: Tensor, **size: Any) -> Tensor:
        """Return pictures of poses (k, 21): (k, height, width, 3) uint8.

        Args:
            qpos: poses [m, quaternion w x y z, rad].
            size: `render_width`, `render_height` or `camera_id`, where they differ from the options.

        Raises:
            ConfigError: the scene has no such camera, or the picture is too small or too large.
            RenderError: no picture can be made on this machine.
        """
        options = replace(self._options, **{name: value for name, value in size.items() if value is not None})
        renderer = self._renderer(options)
        frames = [renderer.draw(pose) for pose in qpos.cpu().double().numpy()]
        return torch.from_numpy(np.stack(frames)).to(qpos.device)

    def after_step(self, qpos: Tensor) -> Tensor:
        """Return pictures of all ducks, new ones every `render_every` steps."""
        self._age += 1
        if self._last is None or self._age >= self._options.render_every:
            self._last, self._age = self.draw(qpos), 0
        return self._last.clone()

    def after_reset(self, qpos: Tensor, ids: Tensor) -> Tensor:
        """Return new pictures of ducks `ids` (k,)."""
        fresh = self.draw(qpos[ids])
        if self._last is None or len(ids) == len(qpos):
            self._last, self._age = fresh.clone(), 0  # the first reset is of all
        else:
            self._last[ids] = fresh
        return fresh

    def take(self, ids: Tensor, source: Pictures, rows: Tensor) -> None:
        """Take the last pictures of ducks `rows` (k,) of `source` for those of ducks `ids` (k,)."""
        if source._last is None:
            return
        last = source._last[rows]
        if self._last is None:
            self._last, self._age = last.clone(), source._age  # for its shape: then every duck is taken
        self._last[ids] = last

    def close(self) -> None:
        """Give the graphics memory back."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()

    def _renderer(self, options: EnvOptions) -> Renderer:
        if self._model is None:
            self._model = load_model(options.physics_options, scene=self._scene)
        shot = Shot(options.render_width, options.render_height, self._camera(options.camera_id))
        if shot not in self._renderers:
            self._renderers[shot] = Renderer(self._model, shot)
        return self._renderers[shot]

    def _camera(self, camera: int | str) -> str:
        assert self._model is not None
        names = [self._model.camera(i).name for i in range(self._model.ncam)]
        if isinstance(camera, str):
            return camera  # the renderer checks it
        if camera >= len(names):
            raise ConfigError(f"camera_id is {camera}; the scene's cameras are {names}, counted from 0")
        return names[camera]
