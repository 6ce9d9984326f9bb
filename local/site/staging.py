"""Creates the input of mkdocs: a copy of docs/ whose links to other files of the repository lead to pages that show these files."""

import posixpath
import shutil
from pathlib import Path, PurePosixPath

from local.site.markdown import converted, relinked, targets
from local.site.navigation import Section, pages

#: Pages outside docs/ that have a place of their own.
PLACES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
#: The first page has no pages under it: the room of the navigation goes to its diagram and its tables.
FIRST = "---\nhide: [navigation]\n---\n\n"
PICTURES = (".png", ".svg", ".jpg")
LANGUAGES = {
    ".py": "python",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".sh": "bash",
    ".sbatch": "bash",
    ".c": "c",
    ".toml": "toml",
}


def place(path: str) -> str:
    """Return the path in the site of a file of the repository: a page of docs/ keeps its path, any other file becomes a page under files/."""
    if path in PLACES:
        return PLACES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"files/{path}" if path.endswith((".md", *PICTURES)) else f"files/{path}.md"


def stage(root: Path, navigation: Section, into: Path) -> None:
    """Write the pages of the navigation, all pages that they link to, and the style sheet into an empty folder."""
    shutil.rmtree(into, ignore_errors=True)
    waiting, done = [(page, "the navigation") for page in pages(navigation)], set[str]()
    while waiting:
        path, linking = waiting.pop()
        if path in done:
            continue
        done.add(path)
        if path.startswith(("..", "/")) or not (root / path).exists():
            raise ValueError(f"{linking} links to {path}, which is not in the repository: correct the link")
        if path.startswith("docs/") and (root / path).is_dir():
            raise ValueError(f"{linking} links to {path}, a folder without a README.md: link to a page in it")
        waiting += [(target, path) for target in _write(root, path, into)]
    (into / "assets").mkdir()
    shutil.copy(Path(__file__).with_name("site.css"), into / "assets")


def _write(root: Path, path: str, into: Path) -> list[str]:
    """Write one file of the repository into the site; return its links."""
    source, target = root / path, into / place(path)
    if path.endswith(".md"):
        text = source.read_text()
        page = converted(relinked(text, path, lambda to: place(_page(root, to))))
        _put(target, FIRST + page if path == "README.md" else page)
        return [_page(root, to) for to in targets(text, path)]
    if source.is_dir():
        children = _children(source, path)
        _put(target, _listed(path, children))
        return children
    if not path.startswith("docs/") and not path.endswith(PICTURES):
        _put(target, _shown(source, path))
        target = target.with_suffix("")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    return []


def _page(root: Path, path: str) -> str:
    """Return the page for a path: for a folder, its README.md."""
    return f"{path}/README.md" if (root / path / "README.md").is_file() else path


def _children(folder: Path, path: str) -> list[str]:
    """Return the files directly in a folder, without those that git would ignore by their name."""
    names = sorted(each.name for each in folder.iterdir() if each.is_file())
    return [f"{path}/{name}" for name in names if not name.startswith((".", "__")) and not name.endswith((".o", ".so"))]


def _listed(path: str, children: list[str]) -> str:
    """Return a page with links to the files of a folder."""
    links = [
        f"- [{PurePosixPath(each).name}]({posixpath.relpath(place(each), posixpath.dirname(place(path)))})\n"
        for each in children
    ]
    return f"{_head(path)}:\n\n{''.join(links)}"


def _shown(source: Path, path: str) -> str:
    """Return a page that shows a file, or only links to it if it is not text."""
    head = f"{_head(path)} ([the file alone]({source.name}))"
    try:
        text = source.read_text().removesuffix("\n")
    except UnicodeDecodeError:
        return f"{head}.\n"
    return f"{head}:\n\n`````{LANGUAGES.get(source.suffix, 'text')}\n{text}\n`````\n"


def _head(path: str) -> str:
    """Return the beginning of a page about a file; the search skips it, because it is not documentation."""
    return f"---\nsearch: {{exclude: true}}\n---\n\n# {PurePosixPath(path).name}\n\n`{path}` in the repository"


def _put(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
