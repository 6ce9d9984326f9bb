"""The age of published evidence: the commit of a report, the paths that it depends on, and their changes since then.

A program that writes a report puts "commit" and the result of `commit` into it; a report that a person writes names its commit in the same
form. tests/unit/test_reports.py fails for a report that is older than `COMMITS` or `FILES` allow, or whose commit is not in the history,
unless `STALE` lists it. That table can only shrink: the test also fails for an entry that is not stale.
"""

import ast
import gc
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from local.paths import REPOSITORY

#: A report is stale when the code of its paths has changed in more files than this, or the tree has more commits since, merged ones counted.
FILES, COMMITS = 200, 200

PRODUCT = ("src", "spank", "images")


@dataclass(frozen=True)
class Evidence:
    """A page of measurements: the paths that it depends on, and the command that writes it."""

    page: str
    paths: tuple[str, ...]
    remedy: str


EVIDENCE = (
    Evidence("docs/performance.md", PRODUCT, "make bench, make bench-scale"),
    Evidence("docs/reliability.md", PRODUCT, "make chaos"),
    Evidence("docs/reports/accounting.md", (*PRODUCT, "tests/cluster"), "make test-accounting"),
    Evidence("docs/reports/attack-suite.md", ("spank",), "make -C spank attack-suite"),
    Evidence("docs/reports/backup.md", ("src/soperator/agents/backup", "images/backup"), "make test-backup"),
    Evidence("docs/reports/bad-machines.md", PRODUCT, "make soak"),
    Evidence("docs/reports/bench-jail.md", ("spank",), "make bench-jail"),
    Evidence("docs/reports/changes.md", PRODUCT, "make soak"),
    Evidence("docs/reports/cluster-tests.md", (*PRODUCT, "tests/cluster"), ".ci/run"),
    Evidence("docs/reports/cold-demo.md", ("images", "local"), "tests/fresh/run"),
    Evidence("docs/reports/deep-checks.md", PRODUCT, "python3 -m tests.soak.deep"),
    Evidence("docs/reports/exporter-real.md", ("src/soperator/agents/exporter",), "make bench-exporter"),
    Evidence("docs/reports/exporter.md", ("src/soperator/agents/exporter",), "make bench-exporter"),
    Evidence("docs/reports/faults.md", PRODUCT, "make chaos"),
    Evidence("docs/reports/health.md", PRODUCT, "python3 -m tests.soak.cost"),
    Evidence(
        "docs/reports/job-list.md", ("src/soperator/slurmrest", "src/soperator/slurm"), "python3 -m local.bench.joblist"
    ),
    Evidence("docs/reports/kills.md", PRODUCT, "make soak"),
    Evidence("docs/reports/many-jobs.md", ("spank",), "make -C spank many-jobs"),
    Evidence("docs/reports/power-day.md", ("src/soperator/policy",), "make bench-day"),
    Evidence("docs/reports/power.md", PRODUCT, "make soak-power"),
    Evidence("docs/reports/release.md", ("local/release", "charts"), "make test-release"),
    Evidence("docs/reports/rest.md", PRODUCT, "make test-rest"),
    Evidence("docs/reports/sacct.md", PRODUCT, "make bench-accounting"),
    Evidence("docs/reports/upgrade.md", PRODUCT, "make test-newer-slurm"),
)
#: Pages that tell what was found and done on one day. They do not claim anything of today's code, so they have no age.
HISTORY = frozenset(
    {
        "docs/reports/attack-jail-2.md",
        "docs/reports/attack-jail-3.md",
        "docs/reports/attack-jail-4.md",
        "docs/reports/attack-jail.md",
        "docs/reports/attack-loops-2.md",
        "docs/reports/attack-loops-3.md",
        "docs/reports/attack-loops-4.md",
        "docs/reports/attack-loops-5.md",
        "docs/reports/attack-loops.md",
        "docs/reports/attack-net.md",
        "docs/reports/attack-new-code.md",
        "docs/reports/bench-jail-beside.md",
        "docs/reports/issue-15.md",
        "docs/reports/prose.md",
        "docs/reports/questions.md",
        "docs/reports/review-2026-11.md",
        "docs/reports/review-backup.md",
    }
)
_NO_COMMIT, _LOST, _OLD = "names no commit", "its commit is not in the history", "much has changed since"
#: What is known to be stale today, and why: whoever makes one anew takes its line out.
STALE = {
    "docs/performance.md": _OLD,
    "docs/reliability.md": _OLD,
    "docs/reports/accounting.md": _OLD,
    "docs/reports/attack-suite.md": _OLD,
    "docs/reports/bad-machines.md": _OLD,
    "docs/reports/bench-jail.md": _NO_COMMIT,
    "docs/reports/changes.md": _LOST,
    "docs/reports/cold-demo.md": _OLD,
    "docs/reports/deep-checks.md": _NO_COMMIT,
    "docs/reports/exporter-real.md": _LOST,
    "docs/reports/exporter.md": _LOST,
    "docs/reports/faults.md": _OLD,
    "docs/reports/health.md": _NO_COMMIT,
    "docs/reports/kills.md": _LOST,
    "docs/reports/many-jobs.md": _NO_COMMIT,
    "docs/reports/power-day.md": _NO_COMMIT,
    "docs/reports/power.md": _LOST,
    "docs/reports/rest.md": _NO_COMMIT,
    "docs/reports/sacct.md": _LOST,
    "docs/reports/upgrade.md": _NO_COMMIT,
}
_COMMIT = re.compile(r"(?i:commits?|code of|of)\W{0,3}((?:[0-9a-f]{7,12}\+?(?:, | and )?)+)")


def commit() -> str:
    """Return the commit of the tree, with a plus if a file of the product is not committed."""
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", *PRODUCT, "charts", "local")
    return _git("rev-parse", "--short=7", "HEAD") + ("+" if changed else "")


def commits_of(text: str) -> list[str]:
    """Return the commits that a report names, without those with uncommitted changes."""
    return [each for found in _COMMIT.findall(text) for each in re.findall(r"[0-9a-f]{7,12}", found) if _is_hash(each)]


def _is_hash(word: str) -> bool:
    return not word.isdigit() or len(word) == 7


def fault(evidence: Evidence, text: str) -> str:
    """Return why a report is stale, empty if it is not; the oldest commit that it names decides."""
    named = commits_of(text)
    if not named:
        return _NO_COMMIT
    if not all(map(is_known, named)):
        return _LOST
    old = [each for each in named if _age(each) > COMMITS or _changed(each, evidence.paths) > FILES]
    return _OLD if old else ""


def is_known(name: str) -> bool:
    """Return whether a commit is an ancestor of this tree."""
    words = ["git", "merge-base", "--is-ancestor", name, "HEAD"]
    return subprocess.run(words, cwd=REPOSITORY, capture_output=True, check=False).returncode == 0


def has_history() -> bool:
    """Return whether git has the history: a clone of depth 1, or a tree without git, does not."""
    words = ["git", "rev-parse", "--is-shallow-repository"]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == "false"


def _age(name: str) -> int:
    return int(_git("rev-list", "--count", f"{name}..HEAD"))


def _changed(name: str, paths: Sequence[str]) -> int:
    """Return the number of files whose code differs; Python files are compared without docstrings and comments where it matters."""
    lines = _git("diff", "--raw", "--no-abbrev", "--no-renames", name, "HEAD", "--", *paths).splitlines()
    return len(lines) if len(lines) <= FILES else sum(not _is_prose(each) for each in lines)


def _is_prose(line: str) -> bool:
    """Return whether a line of `git diff --raw` is about a Python file in which only docstrings and comments changed."""
    meta, _, path = line.partition("\t")
    _, _, old, new, status = meta.split()
    return status == "M" and path.endswith(".py") and _code(old) == _code(new)


@cache
def _code(blob: str) -> str:
    return code(_git("cat-file", "blob", blob))


def code(text: str) -> str:
    """Return the code of a Python file, without docstrings and comments.

    The garbage collector is off meanwhile: CPython 3.11 reports a tree as too deep if an object that is collected then raises an exception.
    """
    gc.disable()
    try:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                match node.body:
                    case [ast.Expr(ast.Constant(str())), *rest]:
                        node.body = rest
        return ast.dump(tree)
    finally:
        gc.enable()


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.strip()
