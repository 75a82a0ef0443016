"""OpenGL without a screen, and MuJoCo without OpenGL.

MuJoCo loads the library that `MUJOCO_GL` names while it is being imported, so a name whose library is absent
would stop training, which needs no pictures. Pictures bring their own context here, whatever was loaded then.
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import AbstractContextManager
from typing import Any, Protocol

from hardware.errors import RenderError

BACKENDS = ("egl", "osmesa", "glfw", "cgl")
"""Values of MUJOCO_GL that name a library: no screen; no screen, in software; a window; macOS."""
_DISABLED = "disable"
_GL_ERRORS = (ImportError, OSError, AttributeError, RuntimeError)
"""What the GL bindings raise, depending on what they miss."""

_wanted = os.environ.get("MUJOCO_GL", "").lower().strip()


class Context(Protocol):
    """An OpenGL context of MuJoCo's."""

    def make_current(self) -> None:
        """Draw into this context from now on, on this thread."""

    def as_current(self) -> AbstractContextManager[None]:
        """Draw into this context inside a `with` block."""

    def free(self) -> None:
        """Give the context back."""


def shield_import() -> None:
    """Import MuJoCo; without OpenGL when MUJOCO_GL asks for a library that does not load."""
    if not _wanted:
        return
    try:
        importlib.import_module("mujoco")
    except _GL_ERRORS:
        os.environ["MUJOCO_GL"] = _DISABLED


def open_context(width: int, height: int) -> Context:
    """Open a context for pictures, current on this thread: what MUJOCO_GL names, else EGL (CGL on macOS).

    Args:
        width: largest picture's width [pixel].
        height: its height [pixel].

    Raises:
        RenderError: pictures are switched off, MUJOCO_GL is not valid, or no context can be had.
    """
    name = _wanted or ("cgl" if sys.platform == "darwin" else "egl")
    if name not in BACKENDS:
        raise RenderError(f"MUJOCO_GL is {name!r}; set it to one of {', '.join(BACKENDS)}, or leave it unset")
    try:
        module: Any = importlib.import_module(f"mujoco.{name}")
        context: Context = module.GLContext(width, height)
        context.make_current()
    except _GL_ERRORS as error:
        reason = str(error).partition("\n")[0]
        raise RenderError(f"no OpenGL context from {name} ({reason}); {_advice(name)}") from None
    return context


def _advice(name: str) -> str:
    if name == "egl":
        return "install EGL (Debian, Ubuntu: apt install libegl1 libgl1-mesa-dri), or go without pictures"
    if name == "osmesa":
        return "install OSMesa (Debian, Ubuntu: apt install libosmesa6), or set MUJOCO_GL=egl"
    return "set MUJOCO_GL=egl where there is no screen"
