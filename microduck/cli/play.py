"""`microduck play`."""

from __future__ import annotations

from pathlib import Path

import tyro

from microduck.cli.console import console
from microduck.cli.progress import Bar


def play(
    run: tyro.conf.Positional[Path],
    out: tyro.conf.Positional[Path] = Path("walk.mp4"),
    task: str | None = None,
    command: tuple[float, float, float] | None = None,
    seconds: float = 10.0,
    last: bool = False,
) -> None:
    """Film a run's policy into an mp4.

    Args:
        run: folder of the run.
        out: the video.
        task: task to play; the library's first unless given.
        command: vx, vy and yaw rate [m/s, m/s, rad/s]; the middle of the task's box unless given.
        seconds: length [s].
        last: take the run's last policy even where its best is known.
    """
    from microduck import playback
    from microduck.learning.run_folder import RunFolder, load_policy
    from microduck.physics.model import load_model
    from microduck.render import Shot, render_frames, write_video

    policy, library, config, _ = load_policy(RunFolder(run), last=last)
    poses = playback.play(policy, library, config, playback.Scene(task, command, seconds))
    shot = Shot(width=640, height=480)
    with Bar("filming", len(poses)) as bar:
        frames = render_frames(load_model(), poses, shot)
        write_video(out, _counted(frames, bar), shot.fps)
    console.print(f"{len(poses) / shot.fps:.1f} s -> {out}")


def _counted(frames, bar):  # type: ignore[no-untyped-def]
    for done, frame in enumerate(frames, 1):
        bar.show(done)
        yield frame
