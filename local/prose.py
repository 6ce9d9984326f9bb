"""Draws a sample of the product's prose, to be read against the rules of plain technical English: `python -m local.prose SEED [COUNT]`.

A docstring is one of a module, class or function. A message is a text of five words or more elsewhere in the code; a value that it takes in is
shown as {…}. The same seed draws the same sample from the same tree.
"""

import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from local.paths import REPOSITORY

_WORDS = 5
_FOLDERS = "src/soperator", "local", "spank", "images"


def texts_of(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the kind, the line and the text of each docstring and each message of a file."""
    tree = ast.parse(path.read_text())
    documents = set(map(id, filter(None, map(_docstring, ast.walk(tree)))))
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in texts for part in ast.walk(node) if part is not node}
    for node in ast.walk(tree):
        if id(node) in parts:
            continue
        match node:
            case ast.Constant(str() as text) if id(node) in documents:
                yield "docstring", node.lineno, " ".join(text.split())
            case ast.Constant(str() as text) if _is_message(text):
                yield "message", node.lineno, " ".join(text.split())
            case ast.JoinedStr(values) if _is_message(text := "".join(map(_shown, values))):
                yield "message", node.lineno, " ".join(text.split())


def _docstring(node: ast.AST) -> ast.expr | None:
    match node:
        case ast.Module(body) | ast.ClassDef(body=body) | ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            match body:
                case [ast.Expr(ast.Constant(str()) as text), *_]:
                    return text
    return None


def _is_message(text: str) -> bool:
    words = [each for each in text.split() if each.strip(".,:;()'`").isalpha()]
    return len(words) >= _WORDS and len(words) * 2 > len(text.split())


def _shown(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else "{…}"


def sample(seed: int, count: int) -> Iterator[str]:
    """Yield `count` docstrings and as many messages of the product and its tools, each as a line with its place."""
    found: dict[str, list[str]] = {"docstring": [], "message": []}
    for path in sorted(path for folder in _FOLDERS for path in (REPOSITORY / folder).rglob("*.py")):
        for kind, line, text in texts_of(path):
            found[kind].append(f"{path.relative_to(REPOSITORY)}:{line}: {text}")
    dice = random.Random(seed)
    for kind, lines in found.items():
        yield f"{kind}: {count} of {len(lines)}"
        yield from dice.sample(lines, count)


if __name__ == "__main__":
    print("\n".join(sample(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100)))
