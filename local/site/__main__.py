"""`python3 -m local.site`: builds the site in build/site; once mkdocs is installed, it needs no network. A broken link fails the build."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from local import pinned
from local.paths import REPOSITORY
from local.progress import say
from local.site.navigation import Section, expanded
from local.site.staging import place, stage

BUILD = REPOSITORY / "build"
SITE = BUILD / "site"
#: A page whose heading is too long for the row of tabs.
TITLES = {"README.md": "Overview"}
#: What a browser loads without being asked, by an address of another host. The theme loads mermaid from one where a page has a diagram in it.
LOADS = re.compile(
    r"""<(?:script|img|iframe|source|embed)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preconnect|preload|icon|dns-prefetch)\b)[^>]*\bhref=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|url\(["']?(?:https?:)?//[^)]+\)|@import\s+["'](?:https?:)?//[^"']+|class="mermaid[^>]*"""
)


def main() -> None:
    """Build the site, and print its path."""
    mkdocs = pinned.build("site")
    navigation = expanded(REPOSITORY)
    staged = BUILD / "site-pages"
    try:
        stage(REPOSITORY, navigation, staged)
    except ValueError as error:
        sys.exit(str(error))
    configuration = BUILD / "mkdocs.yml"
    configuration.write_text(json.dumps(_configuration(navigation, staged), indent=1))
    # Without --quiet: with it mkdocs does not count its warnings, and --strict lets all of them pass.
    command = [
        str(mkdocs),
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--clean",
        "--config-file",
        str(configuration),
    ]
    if subprocess.run(command, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}).returncode:
        sys.exit("The site was not built; mkdocs' warnings are above.")
    if loads := external_loads(SITE):
        sys.exit("The site loads from other hosts:\n" + "\n".join(loads))
    say(f"the site is in {SITE}: open index.html; for the search run python3 -m http.server --bind 127.0.0.1 -d {SITE}")


def external_loads(site: Path) -> list[str]:
    """Return the URLs on other hosts that pages and style sheets of a built site would load."""
    files = sorted([*site.rglob("*.html"), *site.rglob("*.css")])
    return [f"{path.relative_to(site)}: {found[0]}" for path in files for found in LOADS.finditer(path.read_text())]


def _configuration(navigation: Section, staged: Path) -> dict[str, Any]:
    return {
        "INHERIT": str(Path(__file__).with_name("mkdocs.yml")),
        "docs_dir": str(staged),
        "site_dir": str(SITE),
        "copyright": f"Soperator {_version()}",
        "nav": _nav(navigation),
    }


def _nav(section: Section) -> list[Any]:
    """Return a section's entries in the form of mkdocs; a page's title is its heading unless TITLES has another."""
    return [_nav_entry(entry) for entry in section.entries]


def _nav_entry(entry: str | Section) -> Any:
    if isinstance(entry, Section):
        return {entry.title: _nav(entry)}
    return {TITLES[entry]: place(entry)} if entry in TITLES else place(entry)


def _version() -> str:
    """Return the version in the source, and the commit of the pages."""
    source = (REPOSITORY / "src/soperator/__init__.py").read_text()
    version = re.findall(r'__version__ = "(.+)"', source)[0]
    git = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--tags"]
    commit = subprocess.run(git, check=False, capture_output=True, text=True).stdout.strip()
    return f"{version} ({commit})" if commit else version


if __name__ == "__main__":
    main()
