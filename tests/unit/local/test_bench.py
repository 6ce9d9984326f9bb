"""The bench's pure parts: counting in an audit log, judging runs, writing the table."""

import json
from pathlib import Path

import pytest

from local.bench import audit, record, report, watch
from local.bench.figures import FIGURES, PARTS
from local.bench.record import Run
from local.bench.report import BEGIN, END

USER = audit.OPERATOR
START = 1795273685.0  # 2026-11-21T15:08:05Z


def line(
    verb: str, resource: str, at: float, code: int = 200, audit_id: str = "", user: str = USER, sub: str = ""
) -> str:
    """A line of an audit log, `at` seconds after START; the answer takes 0.25 s."""
    stamps = [f"2026-11-21T15:08:{5 + second:09.6f}Z" for second in (at, at + 0.25)]
    return json.dumps(
        {
            "auditID": audit_id or f"{verb}-{resource}-{at}",
            "stage": "ResponseComplete",
            "verb": verb,
            "user": {"username": user},
            "objectRef": {"resource": resource, "subresource": sub, "name": "demo"},
            "responseStatus": {"code": code},
            "requestReceivedTimestamp": stamps[0],
            "stageTimestamp": stamps[1],
        }
    )


def test_a_watch_counts_once():
    """A watch stands in the log at its beginning and at its end, and is one request."""
    log = [line("watch", "pods", 1, audit_id="one"), line("watch", "pods", 1, audit_id="one")]
    assert audit.by_verb(audit.requests(log, USER)) == {"watch": 1}


def test_only_the_users_requests_since_the_start_count():
    """Other users' requests, earlier ones, and a line that is being written are left out."""
    log = [
        line("create", "pods", 0, user="system:admin"),
        line("create", "pods", 1),
        line("create", "secrets", 3),
        line("create", "pods", 4)[:40],
    ]
    assert [each.resource for each in audit.requests(log, USER, since=START + 2)] == ["secrets"]


def test_leases_and_events_are_no_writes():
    """The Lease and Events are counted by their own names, and a status is a write but no creation."""
    log = [
        line("update", "leases", 1),
        line("create", "events", 2, code=201),
        line("patch", "services", 3, code=201),
        line("patch", "slurmclusters", 4, sub="status"),
    ]
    found = audit.requests(log, USER)
    assert audit.by_verb(found) == {"lease": 1, "event": 1, "patch": 2}
    assert [each.is_write for each in found] == [False, False, True, True]
    assert [each.is_creation for each in found] == [False, False, True, False]


def test_last_write_is_when_it_was_answered():
    """The last write ends with its answer; a later Lease does not count; where nothing was written there is none."""
    log = [line("patch", "services", 1), line("update", "leases", 5)]
    assert audit.last_write(audit.requests(log, USER)) == START + 1.25
    assert audit.last_write([]) is None


def test_tail_begins_at_the_offset(tmp_path: Path):
    """What stood in the log before is not read again."""
    log = tmp_path / "audit.log"
    log.write_text("old\n")
    offset = log.stat().st_size
    log.write_text("old\nnew\n")
    assert audit.tail(log, offset) == ["new"]


def test_runs_are_kept_until_they_are_forgotten(tmp_path: Path):
    """Runs survive being written and read, and forgetting a figure leaves the others."""
    file = tmp_path / "bench.jsonl"
    runs = [Run("warm", 50.0, parts={"a": 1.0}), Run("ready", 0.7)]
    for run in runs:
        record.append(run, file)
    assert record.read(file) == runs
    record.forget(["warm"], file)
    assert record.read(file) == runs[1:]


def test_every_part_measures_figures_that_exist():
    """The parts together measure each figure of the table, once."""
    assert sorted(figure for part in PARTS.values() for figure in part) == sorted(each.key for each in FIGURES)


@pytest.mark.parametrize(
    ("values", "said"), [((1.0, 2.0, 19.0, 30.0, 30.0), "met"), ((1.0, 2.0, 21.0, 22.0, 22.5), "**missed**")]
)
def test_a_time_is_judged_by_its_median(values: tuple[float, ...], said: str):
    """A figure is met when its median keeps the goal, and the row shows min, median and max."""
    rows = report.table([Run("start", value) for value in values]).splitlines()
    row = next(each for each in rows if "srun -N2" in each)
    assert row.endswith(f"| {said} |")
    assert f"| 5 | 1.00 s | {values[2]:.1f} s | {values[4]:.1f} s | ≤ 20 s |" in row


def test_a_time_with_too_few_runs_says_so():
    """A goal that one lucky run keeps is not called met without saying that it was one run."""
    assert "| met, by 1 run of 5 |" in report.table([Run("worker", 2.0)])


def test_writes_are_judged_by_each_runs_own_limit():
    """One run with more writes than its children allow misses the goal."""
    figure = next(each for each in FIGURES if each.key == "writes")
    assert report.is_met(figure, [Run("writes", 31, limit=31)])
    assert not report.is_met(figure, [Run("writes", 31, limit=31), Run("writes", 32, limit=31)])


def test_a_figure_without_runs_is_not_measured():
    """Nothing is claimed of a figure that has no run."""
    assert report.table([]).count("not measured") == len(FIGURES)


def test_the_page_keeps_what_people_wrote():
    """Only what is between the markers changes; a page that lost them is refused."""
    page = f"# Title\n{BEGIN}\nold\n{END}\nwhy\n"
    assert report.replace(page, "new") == f"# Title\n{BEGIN}\n\nnew\n\n{END}\nwhy\n"
    with pytest.raises(ValueError, match="markers"):
        report.replace("# Title\n", "new")


def test_a_cold_start_is_taken_from_its_committed_report():
    """The committed report counts unless this bench made a run of its own."""
    text = "# Cold\n\nseconds: 812\ncommit: abc\nwhen: 2026-11-21 15:00\nload before: 0.5\n"
    assert report.committed(text, []) == [Run("cold", 812.0, commit="abc", when="2026-11-21 15:00", load=0.5)]
    assert report.committed(text, [Run("cold", 900.0)]) == []
    assert report.committed("", []) == []


def test_the_breakdown_is_in_the_order_of_time():
    """Moments stand by their median; one that a run has not seen is left out."""
    runs = [Run("start", 9.0, parts={"login": 5.0, "jail": 3.0, "odd": 1.0}), Run("start", 9.0, parts={"login": 7.0, "jail": 4.0})]  # fmt: skip
    rows = report.breakdown(runs).splitlines()[4:]
    assert rows == ["| jail | 3.0 s | 3.5 s | 4.0 s |", "| login | 5.0 s | 6.0 s | 7.0 s |"]


def test_facts_name_commits_and_load_once():
    """The lines above the table name each commit once and the range of the load."""
    runs = [Run("ready", 1, commit="a", load=0.5, when="1"), Run("ready", 1, commit="a", load=2.5, when="2")]
    said = report.facts("a machine", runs)
    assert "Commits: a (" in said
    assert "0.5 to 2.5" in said


def test_moments_are_read_off_the_objects():
    """A role counts as ready by its pods, workers when both are, and a jail when its Job is complete."""

    def pod(role: str) -> watch.Object:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        return {"metadata": {"labels": {"slurm.soperator.io/role": role}}, "status": ready}

    job = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    seen = {
        "pods": [pod("worker"), pod("login")],
        "jobs": [job],
        "clusters": [{"status": {"workers": {"readyReplicas": 1}}}],
    }
    assert {name for name, holds in watch.moments(seen).items() if holds} == {
        "pods made",
        "login ready",
        "populate Job complete",
    }
    seen["pods"].append(pod("worker"))
    assert watch.moments(seen)["workers ready"]
