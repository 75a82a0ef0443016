"""MuJoCo's window onto a running duck."""

from __future__ import annotations

import importlib
import sys
import warnings
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import mujoco

from hardware.errors import RenderError

DISTANCE = 0.7
"""Distance of the window's camera at the start [m]."""


class Viewer:
    """A window that shows a simulation stepped elsewhere. A context manager.

    Args:
        model: the duck, with its visual geoms.
        data: its state; step it inside `lock` only.

    Raises:
        RenderError: there is no screen, or on macOS no `mjpython`.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        try:
            _refuse_blind()
            viewer: Any = importlib.import_module("mujoco.viewer")
            self._handle = viewer.launch_passive(model, data, show_left_ui=False, show_right_ui=False)
        except (ImportError, RuntimeError) as error:  # no GLFW; on macOS, another interpreter than mjpython
            raise RenderError(f"no window opens here: {error}; run without a view") from None
        with self._handle.lock():
            camera, front_left = self._handle.cam, model.vis.global_
            camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
            camera.trackbodyid = model.body("trunk_base").id
            camera.azimuth, camera.elevation = front_left.azimuth, front_left.elevation
            camera.distance = DISTANCE

    @property
    def open(self) -> bool:
        """Whether the user has not closed the window."""
        return bool(self._handle.is_running())

    def lock(self) -> AbstractContextManager[None]:
        """Keep the window from reading while the state changes."""
        lock: AbstractContextManager[None] = self._handle.lock()
        return lock

    def show(self) -> None:
        """Show the state as it is now."""
        self._handle.sync()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.close()


def _refuse_blind() -> None:
    """Refuse where there is no screen; MuJoCo's viewer would wait for one for ever."""
    if sys.platform == "darwin":
        return
    with warnings.catch_warnings():  # the error says the same
        warnings.simplefilter("ignore")
        glfw: Any = importlib.import_module("glfw")
        window = None
        if glfw.init():
            glfw.window_hint(glfw.VISIBLE, glfw.FALSE)
            window = glfw.create_window(16, 16, "", None, None)
            glfw.default_window_hints()
    if not window:
        raise RuntimeError("there is no screen")
    glfw.destroy_window(window)
