"""The players of `make bench-scale`, and what it writes."""

import json

from local.bench.record import Run
from local.bench.scale import kwok, page
from local.bench.scale.figures import GOALS, SIZES
from local.bench.scale.slurm import Slurm


def names(answer):
    return [each["name"] for each in json.loads(answer[1])["nodes"]]


class TestSlurm:
    """The stand-in for slurmrestd."""

    def test_a_node_that_registers_is_idle_and_has_its_whole_record(self):
        """Reading some eighty fields is what a poll costs."""
        slurm = Slurm()
        slurm.register("w-0", 5.0)
        status, text = slurm.answer("GET", "nodes/", {}, {}, 6.0)
        node = json.loads(text)["nodes"][0]
        assert (status, node["name"], node["state"][0], node["slurmd_start_time"]["number"]) == (200, "w-0", "IDLE", 5)
        assert len(node) > 50

    def test_a_question_since_a_time_is_answered_as_slurmctld_does(self):
        """304 while nothing has changed since the second before it, and an error once something has."""
        slurm = Slurm()
        slurm.register("w-0", 5.0)
        said = [slurm.answer("GET", "nodes/", {"update_time": str(since)}, {}, 9.0)[0] for since in (5, 6)]
        assert said == [500, 304]

    def test_a_drain_is_kept_until_it_is_resumed(self):
        """States and the reason as Slurm keeps them: a resumed node keeps the reason."""
        slurm = Slurm()
        slurm.register("w-0", 5.0)
        slurm.answer("POST", "node/w-0", {}, {"state": ["DRAIN"], "reason": "why"}, 7.0)
        assert "DRAIN" in slurm.nodes["w-0"].states
        slurm.answer("POST", "node/w-0", {}, {"state": ["RESUME"]}, 8.0)
        assert (slurm.nodes["w-0"].states[0], slurm.nodes["w-0"].reason, slurm.changed) == ("IDLE", "why", 8)

    def test_a_deleted_record_is_gone_until_the_node_registers_again(self):
        """And who asks for it is told so."""
        slurm = Slurm()
        slurm.register("w-0", 5.0)
        slurm.register("w-1", 5.0)
        slurm.answer("DELETE", "node/w-0", {}, {}, 6.0)
        assert names(slurm.answer("GET", "nodes/", {}, {}, 7.0)) == ["w-1"]
        assert slurm.answer("GET", "node/w-0", {}, {}, 7.0)[0] == 500
        assert names(slurm.answer("GET", "node/w-1", {}, {}, 7.0)) == ["w-1"]


def test_kwok_makes_pods_ready_removes_deleted_ones_and_reports_nodes():
    """Each Stage selects by the state that it ends, so that none runs for ever, but for the report of a Node, which waits."""
    found = {each["metadata"]["name"]: each["spec"] for each in kwok.stages()}
    assert set(found) == {"pod-ready", "pod-delete", "node-ready", "node-report"}
    assert [name for name, spec in found.items() if "delay" in spec] == ["node-report"]
    assert found["pod-delete"]["next"] == {"delete": True}


def test_every_goal_has_its_row_and_is_judged_by_the_best_run_whose_load_is_told():
    """A goal without a run is not called met."""
    runs = [Run("grow-1000.cpu", value, load=load) for value, load in ((9.0, 8.0), (5.0, 2.0), (7.0, 4.0))]
    rows = page.goals(runs).splitlines()
    assert len(rows) == len(GOALS) + 2
    assert sum("not measured" in row for row in rows) == len(GOALS) - 1
    assert any(row.endswith("| 3 | 5 s | 2.0 | 7 s | 9 s | ≤ 4 s | 12.5 s | **missed** |") for row in rows)
    assert page.goals([Run("grow-1000.cpu", 6.1)]).count("**missed**") == 1


def test_every_size_has_its_row():
    """Sizes that were not measured are there too."""
    rows = page.sizes([Run("grow-100.ready", 4.25), Run("grow-100.requests", 129)]).splitlines()
    assert len(rows) == len(SIZES) + 2
    assert "| 100 | 1 | – | 4.2 s | – | – | 129 |" in rows


def test_features_and_weight_of_many_nodes_are_set_in_one_request():
    """A node registers with the name of its NodeSet as its feature, so that the operator finds nothing to update."""
    slurm = Slurm()
    for name in ("w-0", "w-1"):
        slurm.register(name, 5.0)
    first = json.loads(slurm.answer("GET", "node/w-0", {}, {}, 6.0)[1])["nodes"][0]
    assert (first["features"], first["weight"]) == (["w"], 1)
    body = {"name": ["w-[0-1]"], "features": ["w", "blue"], "weight": {"set": True, "number": 7}}
    assert slurm.answer("POST", "nodes/", {}, body, 7.0)[0] == 200
    last = json.loads(slurm.answer("GET", "node/w-1", {}, {}, 8.0)[1])["nodes"][0]
    assert (last["features"], last["weight"], slurm.changed) == (["w", "blue"], 7, 7)
