"""Unpacking a zip that anyone may have made: bounded, and never outside the folder given."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from hardware.errors import SceneError

MOST_MEMBERS = 20_000
"""Number of files, an order of magnitude above that of the upstream repository."""
MOST_BYTES = 1 << 30
"""Size of all members together [bytes]."""

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
_TWICE = (FileExistsError, NotADirectoryError)


def unpack(archive: Path, folder: Path) -> None:
    """Write the regular files of a zip below `folder`. Links are left out.

    Raises:
        SceneError: the zip is damaged or too large, or a member's name leads outside.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            files = [member for member in opened.infolist() if _is_file(member)]
            _check_size(files)
            targets = [folder / _inner_path(member) for member in files]
            for member, target in zip(files, targets, strict=True):
                _write(opened, member, target)
    except _DAMAGED as problem:
        raise SceneError(f"the archive is damaged: {problem}; download it again") from problem
    except _TWICE as problem:
        raise SceneError(f"the archive has two files in one place: {problem.filename}") from problem


def _is_file(member: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(member.external_attr >> 16)  # zero where the maker kept no modes
    return not member.is_dir() and kind in (0, stat.S_IFREG)


def _check_size(files: list[zipfile.ZipInfo]) -> None:
    """Refuse a zip by what it declares; zipfile reads no more of a member than it declares."""
    total = sum(member.file_size for member in files)
    if len(files) > MOST_MEMBERS or total > MOST_BYTES:
        raise SceneError(
            f"the archive declares {len(files)} files of {total} bytes together; at most {MOST_MEMBERS} "
            f"files and {MOST_BYTES} bytes are unpacked, so this is another archive"
        )


def _inner_path(member: zipfile.ZipInfo) -> PurePosixPath:
    path = PurePosixPath(member.filename)
    if (
        not path.parts
        or path.is_absolute()
        or ".." in path.parts
        or any(sign in member.filename for sign in "\\:\0")
    ):
        raise SceneError(f"the archive wants to write {member.filename!r}, outside its folder; do not use it")
    return path


def _write(opened: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    if member.flag_bits & 1 or member.compress_type not in _METHODS:
        raise SceneError(
            f"{member.filename!r} in the archive is encrypted or packed in a way that is not read"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with opened.open(member) as packed, target.open("xb") as file:
        shutil.copyfileobj(packed, file)
