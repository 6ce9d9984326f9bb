"""Published evidence is of a commit that is there, and not much older than the code that it speaks of; what is stale says so in local/report.py."""

import re
from pathlib import Path

import pytest

from local import report
from local.report import EVIDENCE, HISTORY, STALE, Evidence

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("evidence", EVIDENCE, ids=lambda each: each.page)
def test_a_report_is_of_this_code_or_known_to_be_stale(evidence: Evidence) -> None:
    """Its commit is in the history and little has changed since, or its line in STALE says what is wrong."""
    if not report.has_history():
        pytest.skip("this clone has no history: nobody can tell how old a report is")
    found = report.fault(evidence, (REPOSITORY / evidence.page).read_text())
    known = STALE.get(evidence.page, "")
    told = f"{evidence.page}: {found or 'is fresh: take its line out of STALE in local/report.py'}; `{evidence.remedy}` makes it anew"
    assert bool(found) == bool(known), told


def test_every_report_has_its_paths_and_its_remedy() -> None:
    """A page under docs/reports that nobody entered could be of any age."""
    pages = {str(each.relative_to(REPOSITORY)) for each in (REPOSITORY / "docs/reports").glob("*.md")}
    entered = {each.page for each in EVIDENCE}
    assert pages - entered == HISTORY
    assert set(STALE) <= entered


@pytest.mark.parametrize("evidence", EVIDENCE, ids=lambda each: each.page)
def test_what_a_report_rests_on_and_is_made_by_is_there(evidence: Evidence) -> None:
    """Each path, and each target of the Makefile."""
    assert all((REPOSITORY / path).exists() for path in evidence.paths)
    makefile = (REPOSITORY / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", evidence.remedy.replace("make -C", "")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("in a clean clone of commit 43e628a, two cores", ["43e628a"]),
        ("Commits: 6af729f+, 3f4f336 and 2f7378e", ["6af729f", "3f4f336", "2f7378e"]),
        ("on 2026-11-22, code of 11d00e6: two cores", ["11d00e6"]),
        ("images of slurm:4bc24984 made on 20261122", []),
        ("nothing", []),
    ],
)
def test_the_commits_of_a_report_are_read(text: str, found: list[str]) -> None:
    """Tags of images and dates are none."""
    assert report.commits_of(text) == found


def test_a_change_of_docstrings_and_comments_is_no_change_of_code() -> None:
    """So that a report does not age by prose; a changed constant counts."""
    before = '"""One."""\n\n\ndef f():\n    """Two."""\n    return "a"  # three\n'
    after = '"""1."""\n\n\ndef f():\n    """2.\n\n    More.\n    """\n    # 3\n    return "a"\n'
    assert report.code(before) == report.code(after)
    assert report.code(before) != report.code(before.replace('"a"', '"b"'))


def test_a_report_that_names_nothing_or_a_lost_commit_is_stale() -> None:
    """Whatever else it says."""
    if not report.has_history():
        pytest.skip("this clone has no history")
    evidence = Evidence("it", ("src",), "make it")
    assert report.fault(evidence, "all was well") == "names no commit"
    assert report.fault(evidence, "commit 0000000") == "its commit is not in the history"
    assert report.fault(evidence, f"commit {report.commit().rstrip('+')}") == ""
