"""Rules of the house that no tool checks."""

import ast
import gc
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("spank/tests/**/test_*.py")]


def found_in(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The test functions of a file.

    The garbage collector is off meanwhile: CPython 3.11 calls a tree too deep when an object that is removed then raises something.
    """
    gc.disable()
    try:
        tree = ast.parse(path.read_text())
    finally:
        gc.enable()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_test_says_in_a_sentence_what_it_holds_true(path):
    """Each test has a docstring that ends as a sentence does."""
    silent = [test.name for test in found_in(path) if not (ast.get_docstring(test) or "").rstrip().endswith((".", "?"))]
    assert silent == []


def test_no_unit_test_patches():
    """mock.patch in a test would be a fault of the design."""
    guilty = [str(path) for path in TESTS if path.name != "test_house.py" and "mock.patch" in path.read_text()]
    assert guilty == []


#: What a function of these names does cannot be guessed.
VAGUE = {"told", "tell", "said", "says", "of", "look", "hear", "heard", "ask"}
SOURCES = sorted((ROOT / "src/soperator").rglob("*.py"))


def defined() -> Iterator[tuple[Path, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every class and function of the product, with its file."""
    gc.disable()
    try:
        for path in SOURCES:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield path, node
    finally:
        gc.enable()


def test_no_class_name_stands_for_two_things():
    """Who reads a name knows which class is meant."""
    places: dict[str, list[str]] = {}
    for path, node in defined():
        if isinstance(node, ast.ClassDef):
            places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_functions_have_names_that_say_what_they_do():
    """And no class is called Seen."""
    vague = [f"{path.relative_to(ROOT)}: {node.name}" for path, node in defined() if node.name.strip("_") in VAGUE]
    assert vague == []
    assert [path for path, node in defined() if node.name == "Seen"] == []


#: Words of this project alone: no class, function, parameter, field or variable of the product has one as its name.
HOUSE_WORDS = {
    "book",
    "books",
    "wish",
    "ground",
    "crew",
    "calm",
    "is_calm",
    "told",
    "lone",
    "ghosts",
    "mend",
    "tell_error",
    "turn_away",
    "hear_jail",
}
HOUSE_CLASSES = {
    "Inside",
    "Room",
    "Turn",
    "Ask",
    "Wish",
    "Book",
    "Told",
    "Known",
    "Held",
    "Handed",
    "Placed",
    "Followed",
    "Unwell",
    "Judge",
    "Basis",
}


def names_in(tree: ast.AST) -> Iterator[str]:
    """Every name that a file binds."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.arg(arg=name)
            ):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str() as name):
                yield name


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_name_is_a_word_of_this_project_alone(path):
    """A stranger cannot guess what `book` or `calm` is."""
    gc.disable()
    try:
        found = {
            name for name in names_in(ast.parse(path.read_text())) if name.strip("_") in HOUSE_WORDS | HOUSE_CLASSES
        }
    finally:
        gc.enable()
    assert found == set()


#: Words that the tools and the images do not use as names either; the product has some of them as parameters still.
TOOL_WORDS = HOUSE_WORDS | VAGUE | {"town", "bedroom"}
TOOLS = sorted(path for folder in ("local", "images") for path in (ROOT / folder).rglob("*.py"))
SCRIPTS = sorted(
    path
    for folder in ("local", "images")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and re.match(rb"#!.*\b(sh|bash)\b|#.*shellcheck", path.read_bytes()[:200])
)


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_tool_has_a_name_of_this_project_alone(path):
    """Nor has a module: `said` and `town` say nothing to a stranger."""
    gc.disable()
    try:
        found = {name for name in names_in(ast.parse(path.read_text())) if name.strip("_") in TOOL_WORDS}
    finally:
        gc.enable()
    assert found | ({path.stem} & TOOL_WORDS) == set()


def test_no_script_of_an_image_has_such_a_variable_or_function():
    """Of a shell, and of the C programs of the deep checks."""
    assert len(SCRIPTS) > 10
    words = "|".join(sorted(TOOL_WORDS))
    bound = re.compile(rf"^\s*(?:local |read .*)?\b({words})(?:=|\(\))|\$\{{?({words})\b", re.MULTILINE)
    found = [f"{path.relative_to(ROOT)}: {each[0]}" for path in SCRIPTS for each in bound.finditer(path.read_text())]
    declared = re.compile(rf"\b(?:int|long|char|struct \w+|ssize_t) \*?({words})\b")
    sources = sorted((ROOT / "images").rglob("*.[ch]"))
    found += [
        f"{path.relative_to(ROOT)}: {each[0]}" for path in sources for each in declared.finditer(path.read_text())
    ]
    assert found == []


def test_no_folder_holds_more_modules_than_one_can_look_over():
    """At most twelve beside `__init__` and `__main__`; a capability that needs more is two."""
    folders: dict[str, int] = {}
    for path in SOURCES:
        if not path.stem.startswith("__"):
            folders[str(path.parent.relative_to(ROOT))] = folders.get(str(path.parent.relative_to(ROOT)), 0) + 1
    assert {folder: count for folder, count in folders.items() if count > 12} == {}


def test_includes_of_c_have_no_circle():
    """A header and its source are one module; modules of the plugin, of the containers and of the images form no circle."""
    files = [*ROOT.glob("spank/**/*.[ch]"), *ROOT.glob("images/**/*.[ch]")]
    modules: dict[Path, set[Path]] = {}
    for path in files:
        included = (path.parent / name for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M))
        found = {each.resolve().with_suffix("") for each in included}
        modules.setdefault(path.resolve().with_suffix(""), set()).update(found - {path.resolve().with_suffix("")})
    assert len(modules) > 60
    graph = graphlib.TopologicalSorter(modules)
    try:
        graph.prepare()
    except graphlib.CycleError as error:
        circle = [str(each.relative_to(ROOT)) for each in error.args[1]]
        raise AssertionError(circle) from None


def test_no_package_lies_in_the_root():
    """What a build fetched belongs into a cache or into `build`: once four wheels were committed with a change of the command line."""
    assert [each.name for each in ROOT.iterdir() if each.suffix in {".whl", ".pyz", ".gz", ".deb"}] == []
