"""Rules of the house that no tool checks."""

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("spank/tests/**/test_*.py")]


def found_in(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The test functions of a file.

    No garbage is collected meanwhile: CPython 3.11 calls a tree too deep when an object that is removed then raises something.
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
