"""Converts Markdown of the repository's viewer to the Markdown of mkdocs. Pure: text in, text out.

Python-Markdown differs from the viewer in three features of our pages: the content of a list item is indented by four spaces, not by the
width of its marker; a list or table needs an empty line before it; and a callout is an admonition, not a quotation that begins with
[!NOTE].
"""

import posixpath
import re
from collections.abc import Callable

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*(```+|~~~+)")
ITEM = re.compile(r"^( *)([-*+]|\d+[.)])( +)(?=\S)")
CALLOUT = re.compile(r"^> \[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*$")
ADMONITIONS = {"NOTE": "note", "TIP": "tip", "IMPORTANT": "info", "WARNING": "warning", "CAUTION": "danger"}
#: A heading of the same page, and an address with a scheme.
ELSEWHERE = re.compile(r"^(#|[a-z][a-z0-9+.-]*:)")


def converted(text: str) -> str:
    """Return the page in the form that Python-Markdown reads."""
    return "\n".join(_spaced(_indented(_callouts(text.splitlines())))) + "\n"


def relinked(text: str, page: str, place: Callable[[str], str]) -> str:
    """Replace the target of every relative link with its path in the site.

    `page` is the page's path in the repository; `place` returns the path in the site for a path in the repository.
    """
    here = posixpath.dirname(place(page))

    def moved(link: re.Match[str]) -> str:
        if ELSEWHERE.match(link[1]):
            return link[0]
        path, hash_sign, anchor = link[1].partition("#")
        target = place(posixpath.normpath(posixpath.join(posixpath.dirname(page), path)))
        return f"]({posixpath.relpath(target, here or '.')}{hash_sign}{anchor})"

    return "\n".join(_outside_fences(text, lambda prose: LINK.sub(moved, prose)))


def targets(text: str, page: str) -> list[str]:
    """Return the paths in the repository to which the page links."""
    found: list[str] = []

    def noted(path: str) -> str:
        found.append(path)
        return path

    relinked(text, page, noted)
    return [path for path in found if path != page]


def _outside_fences(text: str, change: Callable[[str], str]) -> list[str]:
    lines, fence = [], ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and line.strip() == mark[1]:
            fence = ""
        lines.append(line if mark or fence else change(line))
    return lines


def _callouts(lines: list[str]) -> list[str]:
    """Convert callouts to admonitions."""
    result, inside = [], False
    for line in lines:
        if callout := CALLOUT.match(line):
            inside = True
            result += ["", f"!!! {ADMONITIONS[callout[1]]}", ""]
        elif inside and line.startswith(">"):
            result.append(f"    {line.removeprefix('>').removeprefix(' ')}".rstrip())
        else:
            result += [""] if inside and line else []
            inside = False
            result.append(line)
    return result


def _indented(lines: list[str]) -> list[str]:
    """Indent the content of a list item by four spaces for each list that contains it."""
    result: list[str] = []
    widths: list[int] = []  # how far the contents of each open item are indented in the source
    fence = ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not fence and line.strip():
            blank_before = not result or not result[-1].strip()
            while widths and indent < widths[-1] and (blank_before or ITEM.match(line) or FENCE.match(line)):
                widths.pop()
        outer = widths[-1] if widths else 0
        body = line[min(indent, outer) :] if line.strip() else ""
        result.append(" " * 4 * len(widths) + body if body else "")
        if mark := FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and (item := ITEM.match(line)):
            widths.append(item.end())
    return result


def _spaced(lines: list[str]) -> list[str]:
    """Insert an empty line between a paragraph and a list or table directly after it."""
    result: list[str] = []
    fence = ""
    for line in lines:
        before = result[-1] if result else ""
        starts_list = ITEM.match(line) and not _in_list(result)
        starts_table = line.lstrip().startswith("|") and not before.lstrip().startswith("|")
        if not fence and before.strip() and (starts_list or starts_table):
            result.append("")
        if mark := FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        result.append(line)
    return result


def _in_list(lines: list[str]) -> bool:
    """Return whether the paragraph at the end of these lines is a list item or belongs to one."""
    for line in reversed(lines):
        if not line.strip():
            return False
        if ITEM.match(line):
            return True
    return False
