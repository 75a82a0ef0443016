"""Fetching the upstream model, and noticing when its files are not what they were.

The archive is GitHub's zip of one commit. A commit's id does not tell the digest of its zip, so a first
download is trusted as far as its connection is. The SHA-256 of its model files is then kept beside the
checkout, and must hold from there on.
"""

from __future__ import annotations

import hashlib
import http.client
import logging
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hardware.errors import SceneError
from hardware.files import read_bounded
from microduck.scene.safe_zip import unpack

COMMIT = "d424a0c899f6b33cbd3daeb279913134349c0b63"
"""The commit of pollen-robotics/microduck_rl that TorchRL pins as well."""
MODEL_FOLDER = "src/mjlab_microduck/robot/microduck"
SCENE_FILE = "scene_walk.xml"

_BUILT_IN_INSTEAD = "or leave download and microduck_root out to simulate the built-in duck"
_CHUNK = 1 << 20
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """An archive and how far to trust it.

    Attributes:
        url: address of the zip.
        plain_http: allow connections that are not encrypted.
        most_bytes: size of the zip beyond which it is another file [bytes].
        silence: longest wait for the server [s].
        deadline: longest download [s].
    """

    url: str = f"https://github.com/pollen-robotics/microduck_rl/archive/{COMMIT}.zip"
    plain_http: bool = False
    most_bytes: int = 200 << 20
    silence: float = 30.0
    deadline: float = 1800.0


def fetch(source: Source, checkout: Path, sha256: str | None = None, *, again: bool = False) -> None:
    """Download an archive and put its content at `checkout`, whole or not at all.

    Args:
        source: what to fetch; the zip holds one folder, named like `checkout`.
        checkout: the folder to make.
        sha256: digest that its model files must have; the recorded one, if there is one, unless given.
        again: replace a checkout that is there; otherwise one that another process made meanwhile is kept.

    Raises:
        SceneError: the network fails, the archive is damaged, hostile or too large, its digest is another, or
            it cannot be written.
    """
    _LOG.info("downloading %s to %s", source.url, checkout)
    try:
        checkout.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{checkout.name}.", dir=checkout.parent) as name:
            scratch = Path(name)
            _download(source, scratch / "archive.zip")
            unpack(scratch / "archive.zip", scratch / "new")
            unpacked = scratch / "new" / checkout.name
            _check(source, unpacked, checkout, sha256)
            (scratch / "digest").write_text(digest(unpacked / MODEL_FOLDER) + "\n", encoding="utf-8")
            (scratch / "digest").replace(_record(checkout))
            if again or not _scene(checkout).is_file():
                with suppress(FileNotFoundError):
                    checkout.rename(scratch / "old")
            _move(unpacked, checkout)
    except SceneError:
        raise
    except OSError as problem:
        raise SceneError(f"cannot write {checkout}: {problem.strerror}; choose another root") from problem


def verify(model: Path, sha256: str | None, checkout: Path | None = None, name: object = None) -> None:
    """Check a model's files against the digest given, or else against the one recorded for its checkout.

    Args:
        model: the folder of the scene file.
        sha256: the digest it must have.
        checkout: the downloaded checkout it belongs to.
        name: what a message calls the model; its folder unless given.

    Raises:
        SceneError: it has another digest; the message names both.
    """
    expected, way_out = sha256, "give the digest of the model that you trust"
    if sha256 is None and checkout is not None:
        expected = _recorded(checkout)
        way_out = f"remove {_record(checkout)} if you know why, or else {checkout}, and download it again"
    if expected is not None and (found := digest(model)) != expected:
        raise SceneError(f"the model in {name or model} has the SHA-256 {found}, not {expected}; {way_out}")


def digest(folder: Path) -> str:
    """Return the SHA-256 over the names and contents of all files below `folder`, 64 hex digits.

    In the folder itself, `find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum` gives the same.
    """
    total = hashlib.sha256()
    for name in sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()):
        with (folder / name).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{content}  {name}\n".encode())
    return total.hexdigest()


def _check(source: Source, unpacked: Path, checkout: Path, sha256: str | None) -> None:
    if not _scene(unpacked).is_file():
        raise SceneError(
            f"{source.url} holds no {_scene(Path(checkout.name))}; name a checkout that does as "
            f"microduck_root, {_BUILT_IN_INSTEAD}"
        )
    verify(unpacked / MODEL_FOLDER, sha256, checkout, source.url)


def _move(unpacked: Path, checkout: Path) -> None:
    try:
        unpacked.rename(checkout)
    except OSError:
        if not _scene(checkout).is_file():  # else another process was faster
            raise


def _scene(checkout: Path) -> Path:
    return checkout / MODEL_FOLDER / SCENE_FILE


def _record(checkout: Path) -> Path:
    return checkout.with_name(f"{checkout.name}.sha256")


def _recorded(checkout: Path) -> str | None:
    record = _record(checkout)
    return (
        read_bounded(record, 100, SceneError).decode("utf-8", "replace").strip() if record.exists() else None
    )


def _download(source: Source, archive: Path) -> None:
    size = 0
    with archive.open("wb") as file:
        for chunk in _chunks(source):
            size += len(chunk)
            if size > source.most_bytes:
                raise SceneError(
                    f"{source.url} is larger than {source.most_bytes} bytes, so it is another file"
                )
            file.write(chunk)
    _LOG.info("downloaded %.1f MB", size / 1e6)


def _chunks(source: Source) -> Iterator[bytes]:
    end = time.monotonic() + source.deadline
    try:
        with _opener(source).open(source.url, timeout=source.silence) as response:
            while chunk := response.read1(_CHUNK):
                yield chunk
                if time.monotonic() > end:
                    raise TimeoutError(f"not done after {source.deadline:g} s")
    except (OSError, http.client.HTTPException) as problem:
        raise SceneError(
            f"cannot download {source.url}: {problem}; try again, name a "
            f"checkout that you have as microduck_root, {_BUILT_IN_INSTEAD}"
        ) from problem


def _opener(source: Source) -> urllib.request.OpenerDirector:
    """Return what opens https addresses alone, redirections included, unless the source says otherwise."""
    opener = urllib.request.OpenerDirector()
    schemes = [urllib.request.HTTPSHandler(), *([urllib.request.HTTPHandler()] if source.plain_http else [])]
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        *schemes,
    ):
        opener.add_handler(handler)
    return opener
