"""MkDocs hook: pages that lie beside what they describe, in `hardware/`, become pages of the site.

Links in the sources are those of the repository, so that they work there too; they are turned here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = ("hardware/pi/README.md", "hardware/wiring/README.md", "hardware/wiring/wiring.svg")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages, at their own paths."""
    for page in PAGES:
        files.append(File(page, str(ROOT), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turn links that leave `docs/` or come into it."""
    if page.file.src_uri in PAGES:
        return markdown.replace("](../../docs/", "](../../")
    return markdown.replace("](../hardware/", "](hardware/")
