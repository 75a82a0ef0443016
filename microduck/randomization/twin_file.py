"""A twin in a TOML file that people read and edit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hardware.errors import ConfigError
from hardware.files import read_bounded, replacing
from microduck.randomization.parameters import BY_NAME, PARAMETERS, Parameter
from microduck.randomization.twin import Twin

MAX_FILE_BYTES = 64 * 1024
"""Most that a twin's file may hold."""
_ROOT = "twin"


def save_twin(twin: Twin, path: Path) -> None:
    """Write a file that reads back equal; an old file stays until the new one is whole.

    Raises:
        ConfigError: the file cannot be written there.
    """
    try:
        with replacing(path) as temporary:
            temporary.write_text("\n".join(_lines(twin)) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; choose another place") from error


def load_twin(path: Path) -> Twin:
    """Read a file; what it leaves out is nominal.

    Raises:
        ConfigError: the file is absent, too large, not TOML, or holds an unknown key or a bad value; names
            the file, and the line where it can be told.
    """
    content = read_bounded(path, MAX_FILE_BYTES, ConfigError)
    try:
        text = content.decode("utf-8")
        data = tomllib.loads(text)
    except (ValueError, OverflowError, RecursionError) as error:
        raise ConfigError(f"{path} is no valid twin: {error}") from error
    return _Reader(path, text).twin(data)


def _lines(twin: Twin) -> Iterator[str]:
    yield "# One duck, by how it deviates from the model. SI units, angles in rad."
    yield f"[{_ROOT}]"
    for parameter in PARAMETERS:
        if not parameter.components:
            yield _comment(parameter)
            yield f"{parameter.name} = {getattr(twin, parameter.name)!r}"
    for parameter in PARAMETERS:
        if parameter.components:
            yield ""
            yield _comment(parameter)
            yield f"[{_ROOT}.{parameter.name}]"
            values = getattr(twin, parameter.name)
            yield from (f"{key} = {value!r}" for key, value in zip(parameter.components, values, strict=True))


def _comment(parameter: Parameter) -> str:
    return f"# {parameter.label[0].upper()}{parameter.label[1:]}."


class _Reader:
    """Turns a parsed file into a twin, with the place of what is wrong.

    Args:
        path: of the file, for messages.
        text: its content.
    """

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text

    def twin(self, data: dict[str, Any]) -> Twin:
        self._refuse_unknown("", data, [_ROOT])
        root = self._table("", _ROOT, data.get(_ROOT))
        self._refuse_unknown(_ROOT, root, list(BY_NAME))
        return Twin(**{name: self._value(BY_NAME[name], given) for name, given in root.items()})

    def _value(self, parameter: Parameter, given: Any) -> Any:
        if not parameter.components:
            return self._number(parameter, given, _ROOT, parameter.name)
        table, where = self._table(_ROOT, parameter.name, given), f"{_ROOT}.{parameter.name}"
        self._refuse_unknown(where, table, list(parameter.components))
        return tuple(
            self._number(parameter, table.get(key, parameter.nominal), where, key)
            for key in parameter.components
        )

    def _number(self, parameter: Parameter, given: Any, table: str, key: str) -> float:
        try:
            return parameter.check(given)
        except ConfigError as error:
            raise ConfigError(f"{self._place(table, key)}: {key}: {error}") from error

    def _table(self, above: str, name: str, given: Any) -> dict[str, Any]:
        if not isinstance(given, dict):
            found = "absent" if given is None else repr(given)
            raise ConfigError(f"{self._place(above, name)}: {name} is {found}; it must be a table")
        return given

    def _refuse_unknown(self, table: str, given: dict[str, Any], known: list[str]) -> None:
        for key in given:
            if key not in known:
                raise ConfigError(f"{self._place(table, key)}: unknown key {key!r}; valid keys are {known}")

    def _place(self, table: str, key: str) -> str:
        """Return the file, and the line that sets `key` in `table` where it is plainly written."""
        here = ""
        for number, line in enumerate(self._text.splitlines(), start=1):
            header = re.match(r"\s*\[\s*([\w.\s]+?)\s*\]", line)
            if header:
                here = re.sub(r"\s", "", header[1])
            opens = here == f"{table}.{key}".lstrip(".")
            if opens if header else here == table and re.match(rf"\s*{re.escape(key)}\s*=", line):
                return f"{self._path}:{number}"
        return str(self._path)
