"""`microduck export`."""

from __future__ import annotations

from pathlib import Path

import tyro

from microduck.cli.console import console


def export(run: tyro.conf.Positional[Path], bundle: tyro.conf.Positional[Path], last: bool = False) -> None:
    """Write a run's policy as a skill bundle for the robot, and prove it.

    Args:
        run: folder of the run.
        bundle: folder of the bundle; one that is there is replaced once the new one has passed its proofs.
        last: take the run's last policy even where its best is known.
    """
    from export.run import export_run

    manifest = export_run(run, bundle, last=last)
    parity = manifest["policy"]["parity"]
    console.print(
        f"{len(manifest['skills'])} skill(s) -> {bundle}\n"
        f"policy.onnx differs from torch by at most {parity['max_abs_difference']:.1e} "
        f"over {parity['observations']:,} observations"
    )
