"""Pictures and videos of a duck, drawn off screen."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import TracebackType

import imageio_ffmpeg
import mujoco
import numpy as np

from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import ConfigError, RenderError
from hardware.files import replacing
from microduck.gl import open_context


@dataclass(frozen=True)
class Shot:
    """How a sequence is filmed.

    Attributes:
        width: picture width; for a video even, and 16 or more [pixel].
        height: picture height, likewise [pixel].
        camera: name of a camera of the model.
        fps: poses per second of video [1/s].
    """

    width: int = 960
    height: int = 540
    camera: str = "side"
    fps: float = 1 / CONTROL_PERIOD_S

    def __post_init__(self) -> None:
        for name, size in (("width", self.width), ("height", self.height)):
            if size < 1:
                raise ConfigError(f"picture {name} is {size}; it must be 1 or more")
        if not 1 <= self.fps <= 240:
            raise ConfigError(f"fps is {self.fps}; it must be between 1 and 240")


class Renderer:
    """Draws poses of one model. A context manager, for one thread.

    Args:
        model: the duck, with its visual geoms.
        shot: size and camera.

    Raises:
        ConfigError: the model has no such camera, or the picture exceeds its off-screen buffer.
        RenderError: no picture can be made on this machine.
    """

    def __init__(self, model: mujoco.MjModel, shot: Shot) -> None:
        _check(model, shot)
        self._model, self._data = model, mujoco.MjData(model)
        self._rectangle = mujoco.MjrRect(0, 0, shot.width, shot.height)
        self._scene, self._options = mujoco.MjvScene(model, maxgeom=2 * model.ngeom + 100), mujoco.MjvOption()
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._camera.fixedcamid = model.camera(shot.camera).id
        self._gl = open_context(shot.width, shot.height)
        self._context = self._draw_context()

    def _draw_context(self) -> mujoco.MjrContext:
        try:
            context = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        except mujoco.FatalError as error:
            self._gl.free()
            raise RenderError(
                f"OpenGL cannot draw here ({error}); set MUJOCO_GL=egl where there is no screen"
            ) from None
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)
        return context

    def draw(self, qpos: np.ndarray) -> np.ndarray:
        """Return the picture of a pose (nq,) [m, quaternion w x y z, rad]: (height, width, 3) uint8 RGB."""
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        parts = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self._model, self._data, self._options, None, self._camera, parts, self._scene)
        picture = np.empty((self._rectangle.height, self._rectangle.width, 3), np.uint8)
        with self._gl.as_current():
            mujoco.mjr_render(self._rectangle, self._scene, self._context)
            mujoco.mjr_readPixels(picture, None, self._rectangle, self._context)
        return picture[::-1].copy()  # OpenGL counts rows from below

    def close(self) -> None:
        """Give the graphics memory back."""
        with self._gl.as_current():
            self._context.free()
        self._gl.free()

    def __enter__(self) -> Renderer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def render_frames(model: mujoco.MjModel, qpos: np.ndarray, shot: Shot) -> Iterator[np.ndarray]:
    """Yield a picture (height, width, 3) uint8 RGB for each pose.

    Args:
        model: the duck, with its visual geoms.
        qpos: poses, (T, nq) [m, quaternion w x y z, rad].
        shot: size and camera.

    Raises:
        ConfigError: the poses are not (T, nq) finite numbers, or see `Renderer`.
        RenderError: no picture can be made on this machine.
    """
    poses = np.asarray(qpos, dtype=np.float64)
    if poses.ndim != 2 or poses.shape[1] != model.nq or not len(poses):
        raise ConfigError(
            f"poses have the shape {poses.shape}; needed is (T, {model.nq}) with T of 1 or more"
        )
    if not np.isfinite(poses).all():
        row = int(np.flatnonzero(~np.isfinite(poses).all(axis=1))[0])
        raise ConfigError(f"pose {row} holds NaN or infinity; record finite poses")
    with Renderer(model, shot) as renderer:
        for pose in poses:
            yield renderer.draw(pose)


def write_video(path: Path, frames: Iterable[np.ndarray], fps: float) -> None:
    """Write pictures as an mp4 that plays everywhere (H.264, 4:2:0); a broken attempt leaves no file.

    Args:
        path: the file; one that exists is replaced at the end.
        frames: pictures of one even size, (height, width, 3) uint8 RGB.
        fps: pictures per second [1/s].

    Raises:
        ConfigError: there is not one picture, or `path` does not end in .mp4.
        RenderError: no encoder is there, or the file cannot be written.
    """
    if path.suffix != ".mp4":
        raise ConfigError(f"video {path} must end in .mp4")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            _encode(temporary, frames, fps)
    except OSError as error:
        raise RenderError(f"cannot write {path} ({error.strerror or error}); choose another place") from None


def _encode(path: Path, frames: Iterable[np.ndarray], fps: float) -> None:
    stream = iter(frames)
    first = next(stream, None)
    if first is None:
        raise ConfigError("a video needs at least one picture; record longer")
    height, width, _ = first.shape
    for name, size in (("width", width), ("height", height)):
        if size < 16 or size % 2:
            raise ConfigError(f"video {name} is {size}; H.264 needs an even number of 16 or more")
    # An index at the front lets a browser start before the whole file is there.
    writer = imageio_ffmpeg.write_frames(
        str(path), (width, height), fps=fps, codec="libx264", macro_block_size=2,
        output_params=["-movflags", "+faststart"],
    )  # fmt: skip
    try:
        _feed(writer, None)
        for frame in chain([first], stream):
            _feed(writer, frame)
    finally:
        writer.close()


def _feed(writer: Generator[None, np.ndarray | None, None], frame: np.ndarray | None) -> None:
    try:
        writer.send(frame)
    except RuntimeError as error:
        raise RenderError(f"the video encoder failed ({error}); reinstall imageio-ffmpeg") from None


def render_video(path: Path, model: mujoco.MjModel, qpos: np.ndarray, shot: Shot | None = None) -> None:
    """Film poses into an mp4.

    Args:
        path: the file.
        model: the duck, with its visual geoms.
        qpos: poses, (T, nq), `shot.fps` of them a second [m, quaternion w x y z, rad].
        shot: size, camera and rate; None for 960 x 540 from the side camera at 50 Hz.

    Raises:
        ConfigError: see `render_frames` and `write_video`.
        RenderError: no picture or no video can be made on this machine.
    """
    shot = shot or Shot()
    write_video(path, render_frames(model, qpos, shot), shot.fps)


def _check(model: mujoco.MjModel, shot: Shot) -> None:
    cameras = [model.camera(i).name for i in range(model.ncam)]
    if shot.camera not in cameras:
        raise ConfigError(f"camera {shot.camera!r} does not exist; choose one of {cameras}")
    limit = model.vis.global_
    if shot.width > limit.offwidth or shot.height > limit.offheight:
        raise ConfigError(
            f"a picture of {shot.width} x {shot.height} is too large; "
            f"the most is {limit.offwidth} x {limit.offheight}"
        )
