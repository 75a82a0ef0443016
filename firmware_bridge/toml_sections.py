"""Strict TOML files whose sections are frozen dataclasses: read with the line of what is wrong, and written.

A file class has one field for each section, whose type is the section's dataclass; the fields of that are the
keys. Field types may be bool, int, float, str, Path, a Literal, a tuple of such, and each of them `| None`,
where None means that the key is left out. A section's own checks raise `ConfigError` from `__post_init__`;
so do the file's, where sections do not go together, and these call a key `[section] key`.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hardware.errors import ConfigError
from hardware.files import read_bounded

MAX_FILE_BYTES = 64 * 1024
"""Largest file that is read; a commented one with every key takes below 10 kB."""
COMMENT_WIDTH = 100
_KINDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text in quotes",
    Path: "a path in quotes, not empty and without a NUL character",
}
_SHOWN = 80
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_TWICE = "Cannot overwrite a value"
_File = TypeVar("_File")


def read_sections(path: Path, kind: type[_File]) -> _File:
    """Read a file into its class; what it leaves out has its default.

    Raises:
        ConfigError: the file is absent, too large or not TOML, or it holds an unknown key, a value of another
            type or one out of range; the message names the line, the value and the valid ones.
    """
    return parse_sections(read_bounded(path, MAX_FILE_BYTES, ConfigError), str(path), kind)


def parse_sections(content: bytes, name: str, kind: type[_File]) -> _File:
    """Return the file of class `kind` that `content` holds.

    Args:
        content: the file's bytes.
        name: what messages call the file.
        kind: the file's class.

    Raises:
        ConfigError: as for `read_sections`.
    """
    source = _Source(name, _decode(content, name))
    sections = _field_types(kind)
    found = {}
    for section, table in source.tables().items():
        if section not in sections:
            text = f"unknown section [{section}]; valid ones are {_names(sections)}"
            raise source.error(section, None, text)
        if not isinstance(table, dict):
            text = f"{section} must be a section; write [{section}] on a line of its own"
            raise source.error(section, None, text)
        found[section] = _read_section(source, section, sections[section], table)
    try:
        return kind(**found)
    except ConfigError as error:  # two sections do not go together; the first that is named is told
        named = re.search(r"\[(\w+)\] (\w+)", str(error))
        section, key = (named[1], named[2]) if named else ("", None)
        raise source.error(section, key, str(error)) from error


def render(file: object, comments: bool = True) -> str:
    """Return a file as TOML that reads back equal.

    Args:
        file: an instance of the file's class.
        comments: whether to write, above each section and key, what its docstring says about it.
    """
    lines = _about(type(file)) if comments else []
    for section in fields(file):  # type: ignore[arg-type]
        part = getattr(file, section.name)
        lines += ["", *(_about(type(part)) if comments else []), f"[{section.name}]"]
        meanings = attribute_texts(type(part)) if comments else {}
        for key in _keys(type(part)):
            lines += _comment(meanings.get(key.name, ""))
            lines += _assignment(key.name, getattr(part, key.name), comments)
    return "\n".join(lines).lstrip("\n") + "\n"


def attribute_texts(kind: type) -> dict[str, str]:
    """Return what the section "Attributes" of a class's docstring says about each, as one line of text."""
    block = (inspect.getdoc(kind) or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    texts: dict[str, str] = {}
    name = ""
    for line in block.splitlines():
        start = re.fullmatch(r"    (\w+): (.*)", line)
        if start:
            name = start[1]
        texts[name] = start[2] if start else f"{texts[name]} {line.strip()}"
    return texts


class _Source:
    """A file's text, which finds the lines that messages name."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text
        self._lines = text.splitlines()

    def tables(self) -> dict[str, Any]:
        """Return what the file holds.

        Raises:
            ConfigError: it is not TOML.
        """
        try:
            return tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            raise self._not_toml(str(error)) from error
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
            raise ConfigError(f"{self._name} is no TOML file: {error}") from error

    def error(self, section: str, key: str | None, text: str) -> ConfigError:
        """Return an error at the line of a section's key, or at the section's own."""
        return ConfigError(f"{self._name}, line {self._line(section, key)}: {text}")

    def _not_toml(self, text: str) -> ConfigError:
        place = _PLACE.search(text)
        number = int(place[1]) if place and place[1] else len(self._lines)
        text = _PLACE.sub("", text)
        if text == _TWICE and number:
            key = self._lines[number - 1].partition("=")[0].strip()
            text = f"{key} is given a second time; keep one of the two"
        return ConfigError(f"{self._name}, line {number}: {text}")

    def _line(self, section: str, key: str | None) -> int:
        current, header = "", 1
        for number, line in enumerate(self._lines, 1):
            words = re.match(r"\s*(?:\[\s*([^\]]*?)\s*\]|([^=#]+?)\s*=)", line)
            if not words:
                continue
            if words[1] is not None:
                current = words[1].replace('"', "")
                header = number if current == section else header
                continue
            path = f"{current}.{words[2]}".strip(".").replace('"', "").replace(" ", "")
            if path == (f"{section}.{key}" if key else section):
                return number
            header = number if path == section else header  # `section = { key = value }`
        return header


def _decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(f"{name}, line {line}: a byte that is not UTF-8; save the file as UTF-8") from error


def _read_section(source: _Source, section: str, kind: type, table: Mapping[str, Any]) -> Any:
    types = _field_types(kind)
    values = {}
    for key, value in table.items():
        if key not in types:
            text = f"unknown key {key!r} in [{section}]; valid keys are {_names(types)}"
            raise source.error(section, key, text)
        try:
            values[key] = _fit(value, types[key])
        except ValueError as error:
            text = f"[{section}] {key} = {_shown(value)}; it must be {error}"
            raise source.error(section, key, text) from error
    try:
        return kind(**values)
    except ConfigError as error:
        named = [word for word in re.findall(r"\w+", str(error)) if word in values]
        raise source.error(section, named[0] if named else None, f"[{section}] {error}") from error


def _fit(value: object, kind: Any) -> Any:
    """Return a TOML value as a field's type.

    Raises:
        ValueError: it does not fit; the text says what would.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _fit(value, next(part for part in parts if part is not NoneType))
    if origin is Literal:
        if value not in parts or isinstance(value, bool):
            raise ValueError(f"one of {', '.join(map(_toml, parts))}")
        return value
    if origin is tuple:
        return _fit_tuple(value, parts)
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        value = float(value)
    fits = type(value) is (str if kind is Path else kind) and (kind is not Path or _names_a_file(str(value)))
    if not fits or (isinstance(value, float) and not isfinite(value)):
        raise ValueError(_KINDS[kind])
    return kind(value)


def _names_a_file(text: str) -> bool:
    return bool(text) and "\0" not in text


def _fit_tuple(value: object, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    any_length = parts[-1] is Ellipsis
    count = "" if any_length else f"{len(parts)} values, "
    wanted = f"a list, {count}each {_KINDS.get(parts[0], 'as in the default')}"
    if not isinstance(value, list) or not (any_length or len(value) == len(parts)):
        raise ValueError(wanted)
    kinds = parts[:1] * len(value) if any_length else parts
    try:
        return tuple(_fit(item, kind) for item, kind in zip(value, kinds, strict=True))
    except ValueError as error:
        raise ValueError(wanted) from error


def _field_types(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {key.name: hints[key.name] for key in _keys(kind)}


def _keys(kind: type) -> Iterator[Field[Any]]:
    return (key for key in fields(kind) if key.init)


def _names(known: Mapping[str, Any]) -> str:
    return ", ".join(known)


def _shown(value: object) -> str:
    text = _toml(value) if isinstance(value, bool | int | float | str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _about(kind: type) -> list[str]:
    """Return, as comments, the paragraphs of a class's docstring that are above its sections."""
    text = (inspect.getdoc(kind) or "").partition("\nAttributes:\n")[0]
    return [line for paragraph in text.split("\n\n") for line in _comment(paragraph)]


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, COMMENT_WIDTH, initial_indent="# ", subsequent_indent="# ")


def _assignment(key: str, value: object, comments: bool) -> list[str]:
    if value is None:
        return [f"# {key} is not set."] if comments else []
    return [f"{key} = {_toml(value)}"]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_toml, value))}]"
    # A JSON string is a TOML string, but for one character that only TOML wants escaped.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
