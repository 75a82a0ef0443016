"""The documentation's links, its place in the navigation, and the site as MkDocs builds it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = DOCS / "site" / "mkdocs.yml"
PAGES = [*DOCS.glob("*.md"), *(ROOT / "hardware").glob("*/README.md"), ROOT / "README.md"]
QUIET = "NO_MKDOCS_2_WARNING"
"""What keeps the theme from announcing its makers' other product at each build."""
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return what a page's headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in plain}


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere in the repository."""
    found = []
    for link in LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_link_to_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Here it is\n[a](page.md#here-it-is) [b](page.md#there) [c](other.md) [d](https://x.org)\n"
    )
    assert broken(page) == ["page.md#there", "other.md"]


def test_every_page_is_in_the_navigation() -> None:
    navigation = SITE.read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r"([\w/.-]+\.md)$", navigation, re.MULTILINE))
    pages = {page.name for page in DOCS.glob("*.md")}
    beside = {str(page.relative_to(ROOT)) for page in (ROOT / "hardware").glob("*/README.md")}
    assert listed == pages | beside


def test_site_builds_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed; `pip install 'microduck-toolkit[docs]'` brings it")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "-f",
        str(SITE),
        "-d",
        str(tmp_path / "site"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, QUIET: "1"}
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() + done.stdout.splitlines() if line.strip()]
    assert [line for line in said if not line.startswith("INFO ")] == []
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"{QUIET}=1 $(BIN)/python -m mkdocs build --strict" in recipe
    pages = {str(page.relative_to(tmp_path / "site")) for page in (tmp_path / "site").rglob("*.html")}
    assert {"index.html", "troubleshooting.html", "hardware/pi/index.html"} <= pages
    assert 'src="wiring.svg"' in (tmp_path / "site/hardware/wiring/index.html").read_text(encoding="utf-8")
    assert 'class="mermaid"' in (tmp_path / "site/safety.html").read_text(encoding="utf-8")
