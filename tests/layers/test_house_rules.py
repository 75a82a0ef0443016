"""House rules that no linter knows."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
PACKAGES = ("hardware", "firmware_bridge", "microduck", "export")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home|Users|tmp)/\w")
"""A path that exists on somebody's machine only."""

Rule = Callable[[ast.AST], Iterator[int]]


def prints(tree: ast.AST) -> Iterator[int]:
    """Lines that call print."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield node.lineno


def blanket_handlers(tree: ast.AST) -> Iterator[int]:
    """Lines that catch every exception."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = (
                {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)}
                if node.type
                else set()
            )
            if node.type is None or caught & {"Exception", "BaseException"}:
                yield node.lineno


def long_functions(tree: ast.AST) -> Iterator[int]:
    """Lines where a function starts that is too long."""
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and (node.end_lineno or 0) - node.lineno >= MOST_LINES_OF_A_FUNCTION:
            yield node.lineno


def violations(rule: Rule, paths: list[Path]) -> list[str]:
    return [f"{path}:{line}" for path in paths for line in rule(ast.parse(path.read_text(encoding="utf-8")))]


@pytest.fixture(scope="session")
def modules(sources: list[Path]) -> list[Path]:
    return [path for path in sources if path.suffix == ".py"]


@pytest.fixture(scope="session")
def package_modules(modules: list[Path], root: Path) -> list[Path]:
    return [path for path in modules if path.relative_to(root).parts[0] in PACKAGES]


def test_only_commands_print(package_modules: list[Path], root: Path) -> None:
    quiet = [path for path in package_modules if "cli" not in path.relative_to(root).parts]
    assert len(quiet) > 20
    assert violations(prints, quiet) == []


def test_no_handler_catches_everything(modules: list[Path]) -> None:
    assert violations(blanket_handlers, modules) == []


def test_functions_are_short(modules: list[Path]) -> None:
    assert violations(long_functions, modules) == []


def test_files_are_short(modules: list[Path]) -> None:
    lengths = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules}
    assert {path: length for path, length in lengths.items() if length > MOST_LINES} == {}


def test_no_file_names_a_path_of_some_machine(sources: list[Path]) -> None:
    texts = [
        path
        for path in sources
        if path.suffix in {".py", ".md", ".toml", ".txt", ".xml", ".json", ".csv", ""}
    ]
    assert any(path.name == "Makefile" for path in texts)
    found = [path for path in texts if MACHINE_PATH.search(path.read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (prints, "def f():\n    return [print(1)]"),
        (blanket_handlers, "try:\n    pass\nexcept:\n    raise"),
        (blanket_handlers, "try:\n    pass\nexcept (ValueError, Exception):\n    raise"),
        (blanket_handlers, "try:\n    pass\nexcept BaseException as e:\n    raise"),
        (long_functions, "def f():\n" + "    x = 1\n" * MOST_LINES_OF_A_FUNCTION),
    ],
)
def test_rule_finds_what_it_forbids(rule: Rule, code: str) -> None:
    assert list(rule(ast.parse(code)))


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (prints, "def printer():\n    log.print(1)"),
        (blanket_handlers, "try:\n    pass\nexcept (ValueError, OSError):\n    raise"),
        (long_functions, "def f():\n" + "    x = 1\n" * (MOST_LINES_OF_A_FUNCTION - 1)),
    ],
)
def test_rule_allows_the_rest(rule: Rule, code: str) -> None:
    assert not list(rule(ast.parse(code)))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("see " + "/home/" + "ann/duck", True),
        ("'/" + "tmp/x'", True),
        ("/dev/ttyAMA0", False),
        ("docs/work/plan.md", False),
    ],
)
def test_machine_paths_are_told_from_others(text: str, named: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is named
