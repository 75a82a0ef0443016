"""How a report looks: one column on a phone, two on a desk, nothing fetched from anywhere."""

from __future__ import annotations

from collections.abc import Iterable

from microduck.report.markup import Html, tag

CSS = """
:root { color-scheme: light; --ink: #22262b; --faint: #6b7480; --line: #dde2e8; --duck: #f2b705; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 68rem; color: var(--ink); background: #fff;
       font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; border-left: .5rem solid var(--duck); padding-left: .7rem;
     overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p, figcaption, summary { max-width: 44rem; }
.faint, figcaption { color: var(--faint); font-size: .875rem; }
.wide { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid var(--line); white-space: nowrap; }
tbody th { position: sticky; left: 0; background: #fff; font-weight: 600; min-width: 6rem; }
td div { font-size: .8125rem; }
.same, .better, .worse, .differs, td b { white-space: nowrap; }
.met, .better { color: #1b6e3c; }
.unmet, .worse { color: #b3261e; }
.pair { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
.films { display: grid; gap: .6rem; grid-template-columns: repeat(auto-fill, minmax(min(45%, 18rem), 1fr)); }
figure { margin: 0; }
img, video { width: 100%; height: auto; display: block; border-radius: .3rem; }
code { overflow-wrap: anywhere; font-size: .8125rem; }
"""


def document(title: str, content: Iterable[Html]) -> str:
    """Return a page that needs no other file, headed by its title."""
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        Html(f"<style>{CSS}</style>"),
    )
    body = tag("body", tag("h1", title), *content)
    return f'<!DOCTYPE html>\n<html lang="en">{head}{body}</html>\n'
