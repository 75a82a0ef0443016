"""Pictures show the duck, videos play everywhere, and machines without OpenGL get one clear sentence."""

import os
import subprocess
import sys
from importlib import resources

import imageio_ffmpeg
import mujoco
import numpy as np
import pytest

from hardware.errors import ConfigError, RenderError
from microduck.render import Renderer, Shot, render_frames, render_video, write_video

SMALL = Shot(width=160, height=120)


@pytest.fixture(scope="module")
def duck():
    text = resources.files("hardware").joinpath("duck.xml").read_text(encoding="utf-8")
    return mujoco.MjModel.from_xml_string(text)


@pytest.fixture
def stand(duck):
    return duck.keyframe("STAND").qpos.copy()


@pytest.fixture
def gl(duck):
    """Skip where this machine cannot draw; the error texts are tested without OpenGL."""
    try:
        Renderer(duck, SMALL).close()
    except RenderError as error:
        pytest.skip(str(error))


def yellow(picture):
    red, green, blue = (picture[..., i].astype(int) for i in range(3))
    return (red > 130) & (green > 90) & (blue < red // 2) & (green > 0.6 * red)


def test_side_camera_shows_a_yellow_duck_in_the_middle_of_the_picture(gl, duck, stand):
    (picture,) = render_frames(duck, stand[None], SMALL)
    assert picture.shape == (120, 160, 3) and picture.dtype == np.uint8
    rows, columns = np.nonzero(yellow(picture))
    assert 0.03 < len(rows) / picture[..., 0].size < 0.4
    assert 60 < columns.mean() < 100
    assert rows.mean() < 70  # head and body lie above the dark legs


def test_sky_is_above_and_floor_below(gl, duck, stand):
    (picture,) = render_frames(duck, stand[None], SMALL)
    top, bottom = (picture[row, :20].mean(axis=0) for row in (2, -3))
    assert top[2] > top[0] + 30
    assert abs(bottom[2] - bottom[0]) < 30


def test_contact_shapes_stay_invisible(gl, duck, stand):
    bright = mujoco.MjModel.from_xml_string(
        resources.files("hardware").joinpath("duck.xml").read_text(encoding="utf-8")
    )
    bright.geom_rgba[bright.geom_group == 3] = [1, 0, 1, 1]
    (plain,), (painted,) = (list(render_frames(m, stand[None], SMALL)) for m in (duck, bright))
    assert np.array_equal(plain, painted)


def test_camera_follows_a_walking_duck(gl, duck, stand):
    away = stand.copy()
    away[0] += 5.0
    near, far = render_frames(duck, np.stack([stand, away]), SMALL)
    assert np.abs(yellow(near).sum() - yellow(far).sum()) < 0.02 * yellow(near).sum() + 5


def test_poses_give_different_pictures(gl, duck, stand):
    bowed = stand.copy()
    bowed[12] = -1.0
    first, second, third = render_frames(duck, np.stack([stand, bowed, stand]), SMALL)
    assert (first != second).any()
    assert np.array_equal(first, third)


def test_video_is_h264_with_the_asked_size_rate_and_length(tmp_path):
    frames = (np.full((48, 64, 3), 8 * i, np.uint8) for i in range(25))
    write_video(tmp_path / "new" / "duck.mp4", frames, fps=50)
    reader = imageio_ffmpeg.read_frames(str(tmp_path / "new" / "duck.mp4"))
    meta = next(reader)
    assert meta["codec"] == "h264"
    assert meta["pix_fmt"].startswith("yuv420p")
    assert tuple(meta["size"]) == (64, 48)
    assert meta["fps"] == 50
    decoded = [np.frombuffer(frame, np.uint8).mean() for frame in reader]
    assert len(decoded) == 25
    assert decoded[0] == pytest.approx(0, abs=6) and decoded[-1] == pytest.approx(192, abs=6)
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["duck.mp4"]


def test_rendered_video_holds_one_frame_for_each_pose(tmp_path, gl, duck, stand):
    path = tmp_path / "walk.mp4"
    render_video(path, duck, np.repeat(stand[None], 5, axis=0), SMALL)
    assert imageio_ffmpeg.count_frames_and_secs(str(path))[0] == 5


def test_failed_video_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "duck.mp4"
    path.write_bytes(b"old")

    def broken():
        yield np.zeros((48, 64, 3), np.uint8)
        raise ConfigError("the duck left")

    with pytest.raises(ConfigError, match="the duck left"):
        write_video(path, broken(), fps=50)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["duck.mp4"]


def test_video_in_a_place_that_cannot_hold_it_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RenderError, match="choose another place"):
        write_video(tmp_path / "file" / "duck.mp4", [np.zeros((48, 64, 3), np.uint8)], fps=50)


@pytest.mark.parametrize(("name", "frames"), [("duck.avi", 1), ("duck.mp4", 0)])
def test_wrong_suffix_or_no_frames_are_refused(tmp_path, name, frames):
    with pytest.raises(ConfigError):
        write_video(tmp_path / name, [np.zeros((48, 64, 3), np.uint8)] * frames, fps=50)
    assert not list(tmp_path.iterdir())


def test_missing_encoder_is_reported(tmp_path, monkeypatch):
    def no_encoder():
        raise RuntimeError("No ffmpeg exe could be found")

    monkeypatch.setattr(imageio_ffmpeg._io, "get_ffmpeg_exe", no_encoder)
    with pytest.raises(RenderError, match=r"No ffmpeg exe.*reinstall"):
        write_video(tmp_path / "duck.mp4", [np.zeros((48, 64, 3), np.uint8)], fps=50)


@pytest.mark.parametrize("size", [(0, 48), (64, -2)])
def test_pictures_without_pixels_are_refused(size):
    with pytest.raises(ConfigError, match=r"picture \w+ is (0|-2); it must be 1 or more"):
        Shot(*size)


@pytest.mark.parametrize(("size", "message"), [((14, 48), "width is 14"), ((64, 47), "height is 47")])
def test_videos_of_odd_or_tiny_pictures_are_refused_before_a_file_is_there(size, message, tmp_path):
    with pytest.raises(ConfigError, match=f"video {message}; H.264 needs an even number of 16 or more"):
        write_video(tmp_path / "duck.mp4", [np.zeros((size[1], size[0], 3), np.uint8)], fps=50)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fps", [0, -50, 1000, float("nan")])
def test_impossible_rates_are_refused(fps):
    with pytest.raises(ConfigError, match="fps"):
        Shot(fps=fps)


def test_unknown_camera_names_those_that_exist(duck, stand):
    with pytest.raises(ConfigError, match=r"'front'.*'side', 'head_camera'"):
        next(render_frames(duck, stand[None], Shot(camera="front")))


def test_too_large_a_picture_names_the_limit(duck, stand):
    with pytest.raises(ConfigError, match="1920 x 1080"):
        next(render_frames(duck, stand[None], Shot(width=1922, height=1080)))


@pytest.mark.parametrize("shape", [(21,), (0, 21), (3, 20)])
def test_poses_of_another_shape_are_refused(duck, shape):
    with pytest.raises(ConfigError, match=r"\(T, 21\)"):
        next(render_frames(duck, np.zeros(shape), SMALL))


def test_pose_that_is_not_finite_is_refused_with_its_row(duck, stand):
    poses = np.stack([stand, stand, stand])
    poses[1, 4] = np.nan
    with pytest.raises(ConfigError, match="pose 1 "):
        next(render_frames(duck, poses, SMALL))


def run_python(code, **environment):
    keep = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM", "DISPLAY")}
    return subprocess.run(
        [sys.executable, "-c", code], env=keep | environment, capture_output=True, text=True, check=False
    )


DRAW = """
import microduck, mujoco
from importlib import resources
from hardware.errors import RenderError
from microduck.render import Shot, render_frames
model = mujoco.MjModel.from_xml_string(resources.files("hardware").joinpath("duck.xml").read_text())
try:
    print("drawn", next(render_frames(model, model.key_qpos, Shot(64, 48))).shape)
except RenderError as error:
    print(error.__suppress_context__ or error.__context__ is None, error)
"""


@pytest.mark.parametrize("setting", [{}, {"MUJOCO_GL": "egl"}])
def test_picture_needs_no_setting_before_mujoco_is_imported(gl, setting):
    result = run_python(DRAW, **setting)
    assert result.stdout == "drawn (48, 64, 3)\n", result.stderr


@pytest.fixture
def no_opengl(tmp_path):
    """A PyOpenGL that fails as the real one does where the graphics library is absent."""
    package = tmp_path / "OpenGL"
    package.mkdir()
    (package / "__init__.py").write_text(
        "raise AttributeError(\"'NoneType' object has no attribute 'eglQueryString'\")\n"
    )
    return str(tmp_path)


@pytest.mark.parametrize(
    ("name", "advice"), [("egl", "apt install libegl1"), ("osmesa", "apt install libosmesa6")]
)
def test_absent_library_is_one_sentence_that_says_what_to_install(no_opengl, name, advice):
    result = run_python(DRAW, MUJOCO_GL=name, PYTHONPATH=no_opengl)
    assert result.stdout.startswith(f"True no OpenGL context from {name}"), result.stderr
    assert advice in result.stdout


def test_without_any_setting_egl_is_tried(no_opengl):
    result = run_python(DRAW, PYTHONPATH=no_opengl)
    assert result.stdout.startswith("True no OpenGL context from egl"), result.stderr


def test_unknown_setting_names_the_valid_ones():
    result = run_python(DRAW, MUJOCO_GL="vulkan")
    assert result.stdout.startswith("True MUJOCO_GL is 'vulkan'; set it to one of egl, osmesa"), result.stderr


def test_window_backend_without_a_screen_is_reported():
    result = run_python(DRAW, MUJOCO_GL="glfw")
    assert result.stdout.startswith("True "), result.stderr
    assert "MUJOCO_GL=egl" in result.stdout
