"""Where the model of the duck comes from: the one built in, or the upstream one with its meshes."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

import hardware
from hardware.errors import ConfigError, SceneError
from microduck.scene.download import COMMIT, MODEL_FOLDER, SCENE_FILE, Source, fetch, verify

BUILT_IN = Path(hardware.__file__).with_name("duck.xml").resolve()
"""The built-in duck, in primitive shapes."""
UPSTREAM = "upstream"
"""As `microduck_root`: Pollen Robotics' own model, wherever it is found."""
ROOT_VARIABLE = "MICRODUCK_RL_ROOT"
CACHE = "~/.cache/torchrl/microduck"
"""Where TorchRL keeps its checkouts too."""
SOURCE = Source()

_PACKAGE = "mjlab_microduck"
_INSIDE = ("", "robot/microduck", f"{_PACKAGE}/robot/microduck", MODEL_FOLDER)
"""Where the scene file may lie below a folder that was named."""
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


def resolve_scene(
    microduck_root: str | Path | None = None,
    *,
    root: str | Path | None = None,
    download: bool | str = False,
) -> Path:
    """Return the scene file to simulate.

    Without arguments that is what the variable MICRODUCK_RL_ROOT names, or else the built-in duck: no package
    or checkout that happens to lie on the machine changes the robot. The upstream model is used when
    `microduck_root` is "upstream" or `download` is given; it is looked for in MICRODUCK_RL_ROOT, in the
    installed package mjlab_microduck, and in the checkout of one commit of pollen-robotics/microduck_rl
    below `root`, where TorchRL looks too.

    Args:
        microduck_root: "upstream", or a checkout of microduck_rl, its package's folder, or a scene file.
        root: folder of downloaded checkouts; ~/.cache/torchrl/microduck unless given.
        download: True fetches that commit from GitHub if the upstream model is found nowhere; "force" fetches
            it in any case; "sha256:<64 hex digits>" is True for model files of this digest and no others.
            Ignored, but for "force", where `microduck_root` names a path.

    Raises:
        SceneError: nothing was found (the message lists where), or what was found or fetched is not what it
            was before, or the network does not answer.
        ConfigError: `download` is none of the values above.
    """
    sha256 = _expected_digest(download)
    checkout = Path(root or CACHE).expanduser() / f"microduck_rl-{COMMIT}"
    if download == "force":
        fetch(SOURCE, checkout, again=True)
        return _existing(checkout)
    if microduck_root is not None and str(microduck_root) != UPSTREAM:
        return _existing(Path(microduck_root))
    named = os.environ.get(ROOT_VARIABLE)
    if microduck_root is None and not download:
        return _existing(Path(named)) if named else BUILT_IN
    return _upstream([*([Path(named)] if named else []), *_installed()], checkout, bool(download), sha256)


def _upstream(elsewhere: list[Path], checkout: Path, download: bool, sha256: str | None) -> Path:
    scene = _find([*elsewhere, checkout])
    if scene is None and download:
        fetch(SOURCE, checkout, sha256)
        scene = _find([checkout])
    if scene is None:
        raise _not_found([*elsewhere, checkout])
    own = scene.is_relative_to(checkout.resolve())
    verify(scene.parent, sha256, checkout if own else None)
    return scene


def _expected_digest(download: bool | str) -> str | None:
    if isinstance(download, bool) or download == "force":
        return None
    match = _DIGEST.fullmatch(str(download))
    if match is None:
        raise ConfigError(
            f'download is {download!r}; it must be True, False, "force" or "sha256:" with 64 hex digits'
        )
    return match[1]


def _installed() -> list[Path]:
    spec = find_spec(_PACKAGE)
    return [Path(folder) for folder in (spec and spec.submodule_search_locations) or []]


def _scene_paths(place: Path) -> list[Path]:
    place = place.expanduser()
    return [place] if place.suffix == ".xml" else [place / inside / SCENE_FILE for inside in _INSIDE]


def _find(places: list[Path]) -> Path | None:
    for place in places:
        for path in _scene_paths(place):
            if path.is_file():
                return path.resolve()
    return None


def _existing(place: Path) -> Path:
    scene = _find([place])
    if scene is None:
        raise _not_found([place])
    return scene


def _not_found(places: list[Path]) -> SceneError:
    tried = "\n".join(f"  - {path}" for place in places for path in _scene_paths(place))
    return SceneError(
        f"no {SCENE_FILE} was found. Tried:\n{tried}\n"
        f"Name a checkout of pollen-robotics/microduck_rl as microduck_root or in {ROOT_VARIABLE}, install "
        f"{_PACKAGE}, pass download=True to fetch commit {COMMIT[:9]}, or leave out microduck_root and "
        f"{ROOT_VARIABLE} to simulate the built-in duck"
    )
