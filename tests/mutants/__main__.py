"""`make mutants`: each condition of the lists is taken out in a copy of the tree, and its tests have to fail.

Prints what nobody noticed, and ends with 1 if that is anything; so it does for a condition that is not in its file any more, and for tests that fail
with every condition in place. `python -m tests.mutants WORD…` takes those whose path or text has one of the words.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from local.paths import REPOSITORY
from tests.mutants.backup import BACKUP
from tests.mutants.cli import CLI
from tests.mutants.importers import IMPORTERS
from tests.mutants.mutant import Mutant
from tests.mutants.operator import CONTROL
from tests.mutants.places import AGENTS, JAIL
from tests.mutants.policy import POLICY
from tests.mutants.release import RELEASE

MUTANTS = (*POLICY, *CONTROL, *AGENTS, *BACKUP, *JAIL, *CLI, *IMPORTERS, *RELEASE)
#: Copies of the tree in which tests run side by side, and the most seconds that the tests of one condition may take, and those of all.
SIDE_BY_SIDE, LONGEST, ALL_LONGEST = 2, 180, 1200
#: How pytest ends: all passed, or some failed. Anything else says nothing about the condition.
PASSED, FAILED = 0, 1


def copy_of_tree(to: Path) -> Path:
    """The files that git knows or would know, as they are now."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(words, cwd=REPOSITORY, capture_output=True, check=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        source, target = REPOSITORY / name, to / name
        if source.is_file() or source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return to


def play(tree: Path, tests: Sequence[str], longest: int = LONGEST) -> tuple[int, str]:
    """How pytest ends with these tests in a copy, and its last lines. Examples of properties are the same each time."""
    is_jail = tests[0].startswith("spank/")
    folder = tree / "spank" if is_jail else tree
    chosen = [each.removeprefix("spank/") for each in tests] if is_jail else list(tests)
    quiet = ["-W", "ignore::DeprecationWarning"] if is_jail else []
    command = [sys.executable, *quiet, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout", "60", *chosen]
    env = os.environ | {"PYTHONPATH": f"{tree}/src", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=longest
        )
    except subprocess.TimeoutExpired:
        return FAILED, f"longer than {longest} s"
    return done.returncode, "\n".join((done.stdout + done.stderr).splitlines()[-15:])


def judge(mutant: Mutant, tree: Path) -> str:
    """Take a condition out, play its tests, and put it back; what is wrong, in words, and nothing where a test noticed."""
    path = tree / mutant.path
    before = path.read_text()
    if (count := before.count(mutant.text)) != 1:
        return f"its text is there {count} times: bring tests/mutants up to date"
    path.write_text(before.replace(mutant.text, mutant.instead))
    try:
        code, said = play(tree, mutant.tests)
    finally:
        path.write_text(before)
    if code == FAILED:
        return ""
    return "no test noticed" if code == PASSED else f"pytest ended with {code}:\n{said}"


def baseline(tree: Path, mutants: Sequence[Mutant]) -> str:
    """What fails with every condition in place: nothing could be concluded from it."""
    for is_c in (False, True):
        if tests := sorted({test for each in mutants if each.is_c == is_c for test in each.tests}):
            code, said = play(tree, tests, ALL_LONGEST)
            if code != PASSED:
                return f"with every condition in place pytest ends with {code}:\n{said}"
    return ""


def main(words: Sequence[str]) -> int:
    """Judge all, or those that were asked for."""
    began = time.monotonic()
    chosen = [each for each in MUTANTS if not words or any(word in each.path + each.text for word in words)]
    with tempfile.TemporaryDirectory(prefix="mutants-") as work:
        trees: Queue[Path] = Queue()
        for number in range(SIDE_BY_SIDE):
            trees.put(copy_of_tree(Path(work, str(number))))
        if said := baseline(Path(work, "0"), chosen):
            print(said)
            return 1

        def one(mutant: Mutant) -> tuple[Mutant, str]:
            tree = trees.get()
            try:
                return mutant, judge(mutant, tree)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            wrong = [(mutant, said) for mutant, said in pool.map(one, chosen) if said]
    for mutant, said in wrong:
        print(
            f"\n{mutant.path}: {said}\n  {mutant.text.strip()}\n  users lose: {mutant.loses}\n  {' '.join(mutant.tests)}"
        )
    print(f"{len(chosen)} conditions taken out, {len(wrong)} not noticed, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
