"""The pages as mkdocs gets them: a copy of docs/ whose links to other files of the repository lead to pages that show these files."""

import shutil
from pathlib import Path, PurePosixPath

from local.site.markdown import converted, relinked, targets
from local.site.navigation import Section, pages

#: Pages outside docs/ that have a place of their own.
PLACES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
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
    """Return where in the site a file of the repository is: a page of docs/ at the same path, any other file as a page under files/."""
    if path in PLACES:
        return PLACES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"files/{path}" if path.endswith((".md", *PICTURES)) else f"files/{path}.md"


def stage(root: Path, navigation: Section, into: Path) -> None:
    """Write the pages of the navigation, all that they link to, and the style sheet into an empty folder."""
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
    """Write one file of the repository into the site; return what it links to."""
    source, target = root / path, into / place(path)
    if path.endswith(".md"):
        text = source.read_text()
        _put(target, converted(relinked(text, path, lambda to: place(_page(root, to)))))
        return [_page(root, to) for to in targets(text, path)]
    if path.startswith("docs/") or path.endswith(PICTURES):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    else:
        _put(target, _shown(source, path))
        if source.is_file():
            shutil.copy(source, target.with_suffix(""))
    return []


def _page(root: Path, path: str) -> str:
    """Return the page that stands for a path: a folder's is its README.md."""
    return f"{path}/README.md" if (root / path / "README.md").is_file() else path


def _shown(source: Path, path: str) -> str:
    """Return a page, not found by the search, that shows a file, or the names in a folder."""
    head = f"---\nsearch: {{exclude: true}}\n---\n\n# {PurePosixPath(path).name}\n\n`{path}` in the repository"
    if source.is_dir():
        names = sorted(
            each.name + "/" * each.is_dir() for each in source.iterdir() if not each.name.startswith((".", "__"))
        )
        return f"{head} has:\n\n" + "".join(f"- `{name}`\n" for name in names)
    language = LANGUAGES.get(source.suffix, "text")
    return f"{head} ([the file alone]({source.name})):\n\n`````{language}\n{source.read_text()}`````\n"


def _put(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
