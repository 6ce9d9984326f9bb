"""Draws a sample of the product's prose, to be read against the rules of plain technical English: `python -m local.prose SEED [COUNT]`.

A docstring is one of a Python module, class or function. A message is a text of five words or more elsewhere in the code, of Python or C; a
value in it is shown as {…}. Programs in texts are left out, and so are the texts in the tests of spank, which quote the messages of its C
files. The same seed draws the same sample from the same tree.
"""

import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from local.paths import REPOSITORY

_WORDS = 5
_FOLDERS = "src/soperator", "local", "spank", "images"
_TESTS = REPOSITORY / "spank/tests"
#: The beginning of a line of a program: Python, a shell, a table of nft, or a command of ip.
_PROGRAM = re.compile(
    r"^\s*(#!|import \w|from \w+ import|while |for \w+ in |table ip|link (add|set)|trap )", re.MULTILINE
)
_COMMENT = re.compile(r'/\*.*?\*/|("(?:[^"\\\n]|\\.)*")', re.DOTALL)
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LITERALS = re.compile(rf"(?:{_LITERAL.pattern}\s*)+")
_CONVERSION = re.compile(r"%[-.*0-9]*l*[a-z]")


def texts_of(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the kind, the line and the text of each docstring and each message of a Python file."""
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


def messages_of(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the kind, the line and the text of each message of a C file; adjacent literals are one text."""
    code = _COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n"), path.read_text())
    for found in _LITERALS.finditer(code):
        text = _CONVERSION.sub("{…}", "".join(_LITERAL.findall(found[0])))
        if _is_message(text):
            yield "message", code.count("\n", 0, found.start()) + 1, " ".join(text.split())


def _docstring(node: ast.AST) -> ast.expr | None:
    match node:
        case ast.Module(body) | ast.ClassDef(body=body) | ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            match body:
                case [ast.Expr(ast.Constant(str()) as text), *_]:
                    return text
    return None


def _is_message(text: str) -> bool:
    words = [each for each in text.split() if each.strip(".,:;()'`").isalpha()]
    return len(words) >= _WORDS and len(words) * 2 > len(text.split()) and not _PROGRAM.search(text)


def _shown(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else "{…}"


def sample(seed: int, count: int) -> Iterator[str]:
    """Yield `count` docstrings and as many messages of the product and its tools, each as a line with its path and line number."""
    found: dict[str, list[str]] = {"docstring": [], "message": []}
    for path in sorted(path for folder in _FOLDERS for path in (REPOSITORY / folder).rglob("*.*")):
        read = {".py": texts_of, ".c": messages_of}.get(path.suffix)
        for kind, line, text in read(path) if read else ():
            if kind == "docstring" or not path.is_relative_to(_TESTS):
                found[kind].append(f"{path.relative_to(REPOSITORY)}:{line}: {text}")
    dice = random.Random(seed)
    for kind, lines in found.items():
        yield f"{kind}: {count} of {len(lines)}"
        yield from dice.sample(lines, count)


if __name__ == "__main__":
    print("\n".join(sample(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100)))
