"""Before anything is done to a node Slurm is asked anew: about that node alone, or about all."""

from soperator.control.workers import choose
from soperator.decide.drain import SCALE_IN
from soperator.decide.workers import Delete, Drain, Seen, WorkerPod
from soperator.slurm.node import SlurmNode
from soperator.slurmrest.client import SlurmError


def node(index, *states, reason=""):
    return SlurmNode(f"w-{index}", frozenset(states), reason)


def seen(*nodes, wanted=0):
    pods = {index: WorkerPod(index, "new", "Running", False, True) for index in range(len(nodes))}
    return Seen("w", wanted, "new", pods, {each.name: each for each in nodes})


class Slurm:
    """What Slurm says by now; `asked` is what it was asked."""

    def __init__(self, *nodes):
        self.now, self.asked = {each.name: each for each in nodes}, []

    async def only(self, names):
        self.asked.append(sorted(names))
        if missing := set(names) - self.now.keys():
            raise SlurmError(f"Invalid node name specified: {missing}")
        return {name: self.now[name] for name in names}

    async def nodes(self):
        self.asked.append("all")
        return self.now

    async def jobs(self):
        self.asked.append("jobs")
        return []


DRAINED = ("IDLE", "DRAIN")


async def test_a_node_is_asked_for_alone_before_its_pod_is_deleted():
    """The others need not be written down for it."""
    slurm = Slurm(node(0, *DRAINED, reason=SCALE_IN), node(1, "IDLE"))
    plan, failed = await choose(seen(*slurm.now.values(), wanted=1), slurm)
    assert [type(each) for each in plan.actions] == [Delete]
    assert (slurm.asked, failed) == ([["w-0"]], "")


async def test_a_node_that_took_a_job_meanwhile_keeps_its_pod():
    """What was seen at the last poll is no reason for a deletion."""
    before = seen(node(0, *DRAINED, reason=SCALE_IN))
    slurm = Slurm(node(0, "ALLOCATED", "DRAIN", reason=SCALE_IN))
    plan, _ = await choose(before, slurm)
    assert plan.actions == ()


async def test_all_are_asked_for_when_the_answer_leads_to_another_node():
    """A resumed node is no surplus any more, and nothing is done to the one that is, before Slurm is asked about it too."""
    before = seen(node(0, "IDLE"), node(1, *DRAINED, reason=SCALE_IN), wanted=1)
    slurm = Slurm(node(0, *DRAINED, reason=SCALE_IN), node(1, "ALLOCATED"))
    plan, _ = await choose(before, slurm)
    assert slurm.asked[-1] == "all"
    assert [each.index for each in plan.actions if isinstance(each, Delete)] == [0]
    assert not any(isinstance(each, Drain) for each in plan.actions)


async def test_all_are_asked_for_when_slurm_does_not_know_one():
    """Its record went meanwhile: that is no failure."""
    before = seen(node(0, *DRAINED, reason=SCALE_IN))
    slurm = Slurm()
    _, failed = await choose(before, slurm)
    assert (slurm.asked, failed) == ([["w-0"], "all"], "")


async def test_many_are_asked_for_at_once():
    """One answer about all is less than hundreds about one each."""
    slurm = Slurm(*(node(index, "IDLE") for index in range(20)))
    plan, _ = await choose(seen(*slurm.now.values()), slurm)
    assert slurm.asked == ["all"]
    assert len(plan.actions) == 20


async def test_without_an_answer_nothing_is_done():
    """And the status says why."""

    class Silent(Slurm):
        async def nodes(self):
            raise SlurmError("connection refused")

    plan, failed = await choose(seen(node(0, *DRAINED, reason=SCALE_IN)), Silent())
    assert plan.actions == ()
    assert "connection refused" in failed
