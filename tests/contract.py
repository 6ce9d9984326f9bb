"""What the operator takes for granted of slurmrestd, as questions with the answers that it counts on.

tests/slurm plays them against a real slurmctld and slurmrestd, and tests/world against FakeSlurm, on which every world test rests: the same
assertions, so that the fake cannot say what the real one would not. Each is a coroutine over a `Stage`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

import pytest

from soperator.slurm.job import SlurmJob
from soperator.slurmrest.client import SlurmDenied, SlurmError, SlurmRest

REASON = "soperator: scale-in"


class Stage(Protocol):
    """A Slurm without nodes, and what others than the operator do to it."""

    @property
    def rest(self) -> SlurmRest:
        """The operator's client."""

    def stranger(self) -> SlurmRest:
        """A client with another key."""

    async def register(self, *names: str) -> None:
        """Start slurmd of nodes, and wait until they are idle."""

    async def run(self, *names: str, epilog: bool = False) -> int:
        """A batch job that runs on whole nodes; with `epilog` each of them takes seconds to clean up after it."""

    async def array(self, *names: str) -> list[int]:
        """The numbers of the tasks of an array, each of which runs on one of these nodes, in whatever order."""

    async def het(self, *names: str) -> list[int]:
        """The numbers of the components of a heterogeneous batch job, each of which runs on one of these nodes; the leader comes first."""

    async def requeue(self, words: str) -> str:
        """`scontrol requeue`; what it says where Slurm refuses."""

    async def interactive(self, name: str) -> int:
        """A job that is no batch job, and runs on a node."""

    async def suspend(self, job: int) -> None:
        """`scontrol suspend`."""

    async def set(self, name: str, state: str, reason: str) -> None:
        """`scontrol update` of a node's state by root."""

    async def reserve(self, name: str) -> None:
        """A reservation that holds a node from now on."""

    async def release(self) -> None:
        """The end of that reservation."""


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 30.0) -> None:
    """Ask until it is so."""
    end = time.monotonic() + seconds
    while not await holds():
        assert time.monotonic() < end, "it never became so"
        await asyncio.sleep(0.2)


async def jobs_of(stage: Stage) -> list[SlurmJob]:
    """The jobs that hold nodes, of a list that is asked for now; without that a list serves for some seconds."""
    return await stage.rest.jobs(asyncio.get_running_loop().time())


async def node_of(stage: Stage, name: str = "w-0"):
    """One node as Slurm has it now."""
    return (await stage.rest.nodes())[name]


async def a_node_that_registers_is_up_and_idle(stage: Stage) -> None:
    """All nodes are in one answer, and one can be asked for alone."""
    assert await stage.rest.nodes() == {}
    await stage.register("w-0", "w-1")
    found = await stage.rest.nodes()
    assert set(found) == {"w-0", "w-1"}
    assert all(each.is_up and not each.is_busy and not each.is_draining for each in found.values())
    assert set(await stage.rest.only(["w-1"])) == {"w-1"}


async def a_node_that_slurm_does_not_know_is_an_error(stage: Stage) -> None:
    """To ask for it, to drain it and to remove it; 24.11 answers the question with 200 and an error that says that there is none."""
    with pytest.raises(SlurmError, match="GET node/w-9: No error"):
        await stage.rest.only(["w-9"])
    for ask in (stage.rest.drain("w-9", REASON), stage.rest.resume("w-9"), stage.rest.delete("w-9")):
        with pytest.raises(SlurmError, match="Invalid node name"):
            await ask


async def a_drain_shows_its_reason_its_time_and_slurmuser(stage: Stage) -> None:
    """And is no administrator's."""
    await stage.register("w-0")
    await stage.rest.drain("w-0", REASON)
    node = await node_of(stage)
    assert (node.is_drained, node.reason, node.reason_by) == (True, REASON, "slurm")
    assert abs(node.reason_at - time.time()) < 60
    assert not node.is_administrators


async def a_second_drain_takes_the_reason_over(stage: Stage) -> None:
    """Also from an administrator: the policy alone keeps his word."""
    await stage.register("w-0")
    await stage.set("w-0", "DRAIN", "bad disk")
    assert (await node_of(stage)).is_administrators
    await stage.rest.drain("w-0", REASON)
    node = await node_of(stage)
    assert (node.reason, node.reason_by, node.is_administrators) == (REASON, "slurm", False)


async def a_persons_reason_that_is_worded_as_the_operators_is_a_persons(stage: Stage) -> None:
    """Slurm says who signed it; also where the operator had drained the node before."""
    await stage.register("w-0")
    await stage.set("w-0", "DRAIN", REASON)
    assert ((await node_of(stage)).is_ours, (await node_of(stage)).is_administrators) == (False, True)
    await stage.rest.drain("w-0", f"{REASON} again")
    assert (await node_of(stage)).is_ours
    await stage.set("w-0", "DRAIN", REASON)
    assert not (await node_of(stage)).is_ours


async def a_reason_that_is_repeated_on_a_drained_node_keeps_its_signer(stage: Stage) -> None:
    """So who takes a drain over has to word it differently. After a resume, which leaves the reason, the next drain has its own signer."""
    await stage.register("w-0")
    await stage.set("w-0", "DRAIN", REASON)
    await stage.rest.drain("w-0", REASON)
    assert (await node_of(stage)).reason_by == "root"
    await stage.rest.resume("w-0")
    await stage.rest.drain("w-0", REASON)
    assert (await node_of(stage)).reason_by == "slurm"


async def a_drain_in_the_words_of_a_former_one_has_its_own_time(stage: Stage) -> None:
    """From it the time of the jobs counts."""
    await stage.register("w-0")
    await stage.rest.drain("w-0", REASON)
    before = (await node_of(stage)).reason_at
    await stage.rest.resume("w-0")
    await asyncio.sleep(3)
    await stage.rest.drain("w-0", REASON)
    assert (await node_of(stage)).reason_at >= before + 2


async def a_resume_lifts_a_drain(stage: Stage) -> None:
    """The reason stays with 24.11 and goes with 26.05, and the node is up once its slurmd has answered."""
    await stage.register("w-0")
    await stage.rest.drain("w-0", REASON)
    await stage.rest.resume("w-0")
    node = await node_of(stage)
    assert not node.is_draining
    assert node.reason in (REASON, "")
    await until(lambda: _is(stage, "is_up"))


async def a_resume_lifts_an_administrators_down_too(stage: Stage) -> None:
    """So the operator must never send one to a node that he set DOWN."""
    await stage.register("w-0")
    await stage.set("w-0", "DOWN", "bad disk")
    node = await node_of(stage)
    assert (node.is_down, node.reason, node.is_administrators) == (True, "bad disk", True)
    await stage.rest.resume("w-0")
    assert not (await node_of(stage)).is_down


async def a_drained_node_is_busy_until_its_job_has_ended(stage: Stage) -> None:
    """And the job runs on."""
    await stage.register("w-0")
    job = await stage.run("w-0")
    await stage.rest.drain("w-0", REASON)
    node = await node_of(stage)
    assert (node.is_draining, node.is_busy, node.is_drained) == (True, True, False)
    assert [each.number for each in await jobs_of(stage)] == [job]
    await stage.rest.cancel(job)
    await until(lambda: _is(stage, "is_drained"))
    assert await jobs_of(stage) == []


async def a_node_is_busy_while_it_cleans_up(stage: Stage) -> None:
    """COMPLETING lasts as long as the epilog does."""
    await stage.register("w-0")
    job = await stage.run("w-0", epilog=True)
    await stage.rest.drain("w-0", REASON)
    await stage.rest.cancel(job)
    await until(lambda: _has(stage, "COMPLETING"))
    assert (await node_of(stage)).is_busy
    assert await jobs_of(stage) == []
    await until(lambda: _is(stage, "is_drained"))


async def a_job_holds_all_its_nodes(stage: Stage) -> None:
    """Each of them is busy, and is named by the job; its end frees them together."""
    await stage.register("w-0", "w-1")
    job = await stage.run("w-0", "w-1")
    (found,) = await jobs_of(stage)
    assert (found.number, found.nodes, found.may_requeue) == (job, {"w-0", "w-1"}, True)
    assert all(each.is_busy for each in (await stage.rest.nodes()).values())
    await stage.rest.cancel(job)

    async def free() -> bool:
        return not any(each.is_busy for each in (await stage.rest.nodes()).values())

    await until(free)


async def the_last_task_of_an_array_has_its_number(stage: Stage) -> None:
    """So one alone is warned and ended by its name: by the number all are meant, on whatever nodes they run."""
    await stage.register("w-0", "w-1")
    numbers = await stage.array("w-0", "w-1")
    found = {each.number: each for each in await jobs_of(stage)}
    last = found[min(numbers)]
    assert (set(found), last.words) == (set(numbers), f"{last.number}_1")
    assert await stage.rest.job(last.number) == last
    await stage.rest.signal(last.words, "CONT")
    await stage.rest.cancel(last.words)

    async def alone() -> bool:
        return {each.number for each in await jobs_of(stage)} == {max(numbers)}

    await until(alone)


async def by_the_number_of_an_array_all_its_tasks_end(stage: Stage) -> None:
    """Though it is the number of one task."""
    await stage.register("w-0", "w-1")
    numbers = await stage.array("w-0", "w-1")
    await stage.rest.cancel(min(numbers))

    async def over() -> bool:
        return await jobs_of(stage) == []

    await until(over)


async def a_heterogeneous_job_ends_as_a_whole_by_its_leader(stage: Stage) -> None:
    """Each component names the leader, and may be requeued because the leader may; a signal to the leader's number ends none."""
    await stage.register("w-0", "w-1")
    numbers = await stage.het("w-0", "w-1")
    found = {each.number: each for each in await jobs_of(stage)}
    assert [(each, found[each].words, found[each].may_requeue) for each in numbers] == [
        (each, str(numbers[0]), True) for each in numbers
    ]
    assert [await stage.rest.job(each) for each in numbers] == [found[each] for each in numbers]
    await stage.rest.signal(found[numbers[1]].words, "CONT")
    assert {each.number for each in await jobs_of(stage)} == set(numbers)
    await stage.rest.cancel(found[numbers[1]].words)

    async def over() -> bool:
        return await jobs_of(stage) == []

    await until(over)


async def a_component_of_a_heterogeneous_job_ends_alone_by_its_number(stage: Stage) -> None:
    """The leader runs on without it, and it cannot be requeued alone: so the operator must never name a component."""
    await stage.register("w-0", "w-1")
    numbers = await stage.het("w-0", "w-1")
    assert await stage.requeue(str(numbers[1])) != ""
    assert {each.number for each in await jobs_of(stage)} == set(numbers)
    await stage.rest.cancel(numbers[1])

    async def alone() -> bool:
        return [each.number for each in await jobs_of(stage)] == [numbers[0]]

    await until(alone)


async def a_heterogeneous_job_waits_again_as_a_whole(stage: Stage) -> None:
    """By the number of its leader; all its nodes are free then."""
    await stage.register("w-0", "w-1")
    numbers = await stage.het("w-0", "w-1")
    assert await stage.requeue(str(numbers[0])) == ""

    async def waits() -> bool:
        found = [await stage.rest.run(each) for each in numbers]
        return all(each is not None and each.is_waiting for each in found)

    await until(waits)


async def an_interactive_job_cannot_be_requeued(stage: Stage) -> None:
    """It has no batch script that could begin again."""
    await stage.register("w-0")
    job = await stage.interactive("w-0")
    (found,) = await jobs_of(stage)
    assert (found.number, found.may_requeue) == (job, False)


async def a_record_with_a_job_is_not_removed(stage: Stage) -> None:
    """Slurm refuses, whether it is drained or not; when the job has ended it obeys."""
    await stage.register("w-0")
    job = await stage.run("w-0")
    with pytest.raises(SlurmError):
        await stage.rest.delete("w-0")
    await stage.rest.drain("w-0", REASON)
    with pytest.raises(SlurmError):
        await stage.rest.delete("w-0")
    assert (await node_of(stage)).is_busy
    await stage.rest.cancel(job)
    await until(lambda: _is(stage, "is_drained"))
    await stage.rest.delete("w-0")
    assert await stage.rest.nodes() == {}


async def a_record_in_a_reservation_is_not_removed(stage: Stage) -> None:
    """So says the flag that slurmctld sets within seconds of its beginning; before that it would be removed."""
    await stage.register("w-0")
    await stage.reserve("w-0")
    await until(lambda: _has(stage, "RESERVED"))
    with pytest.raises(SlurmError, match="busy"):
        await stage.rest.delete("w-0")
    await stage.release()
    await stage.rest.delete("w-0")
    assert await stage.rest.nodes() == {}


async def a_suspended_job_is_only_in_the_list_of_jobs(stage: Stage) -> None:
    """Its node looks idle, a drained one drained, and slurmctld removes the record under it: nobody but the operator protects it."""
    await stage.register("w-0")
    job = await stage.run("w-0")
    await stage.suspend(job)
    assert [(each.number, each.nodes) for each in await jobs_of(stage)] == [(job, {"w-0"})]
    await stage.rest.drain("w-0", REASON)
    assert not {"ALLOCATED", "MIXED", "COMPLETING"} & (await node_of(stage)).states
    await stage.rest.delete("w-0")
    assert await stage.rest.nodes() == {}
    assert [each.number for each in await jobs_of(stage)] == [job]


async def slurmctld_says_what_time_it_is(stage: Stage) -> None:
    """By its own clock, and not when the node changed last."""
    await stage.register("w-0")
    before = await stage.rest.clock("w-0")
    await asyncio.sleep(3)
    assert 2 <= await stage.rest.clock("w-0") - before <= 5


async def nothing_new_is_said_without_the_nodes(stage: Stage) -> None:
    """304 since the last answer, until anything changes."""
    await stage.register("w-0")
    last = 0

    async def quiet() -> bool:
        nonlocal last
        last = (await stage.rest.fetch_nodes()).moment
        await asyncio.sleep(2.1)
        last = (await stage.rest.fetch_nodes()).moment
        return not await stage.rest.has_changed(last)

    await until(quiet)
    assert not await stage.rest.has_changed(last)
    await stage.rest.drain("w-0", REASON)
    assert await stage.rest.has_changed(last)


async def a_wrong_key_is_refused(stage: Stage) -> None:
    """In a way that is told from every other error, so that the key is read again."""
    stranger = stage.stranger()
    try:
        for ask in (stranger.nodes(), stranger.jobs(), stranger.drain("w-0", REASON)):
            with pytest.raises(SlurmDenied):
                await ask
    finally:
        await stranger.close()


async def a_signal_ends_no_job_that_takes_it(stage: Stage) -> None:
    """Nor does its comment; a job that Slurm does not know is none, and to end it is no error."""
    await stage.register("w-0")
    job = await stage.run("w-0")
    await stage.rest.signal(job, "CONT")
    await stage.rest.comment(job, "see ticket 7")
    assert [(each.number, each.comment) for each in await jobs_of(stage)] == [(job, "see ticket 7")]
    assert await stage.rest.run(job + 1000) is None
    await stage.rest.cancel(job + 1000)


async def an_update_that_changes_nothing_is_taken(stage: Stage) -> None:
    """By it slurmctld is made to write its nodes down."""
    await stage.register("w-0")
    before = await node_of(stage)
    await stage.rest.save("w-0")
    assert (await node_of(stage)).states == before.states


async def _is(stage: Stage, what: str) -> bool:
    return bool(getattr(await node_of(stage), what))


async def _has(stage: Stage, state: str) -> bool:
    return state in (await node_of(stage)).states


async def features_and_weight_are_updated_together(stage: Stage) -> None:
    """Of several nodes in one request, also under a job, which runs on; the drain of a node and its reason stay."""
    await stage.register("w-0", "w-1")
    job = await stage.run("w-0")
    await stage.set("w-1", "DRAIN", "bad disk")
    await stage.rest.set_fields("w-[0-1]", ["w", "blue"], 7)
    for name in ("w-0", "w-1"):
        shape = (await node_of(stage, name)).shape
        assert shape is not None
        assert (shape.features, shape.weight) == ({"w", "blue"}, 7)
    assert (await node_of(stage, "w-1")).reason == "bad disk"
    assert [each.number for each in await jobs_of(stage)] == [job]
    await stage.rest.set_fields("w-0", None, 3)
    shape = (await node_of(stage)).shape
    assert shape is not None
    assert (shape.features, shape.weight) == ({"w", "blue"}, 3)


async def an_update_over_an_unknown_node_changes_those_before_it(stage: Stage) -> None:
    """So it is only repeated without that node."""
    await stage.register("w-0")
    with pytest.raises(SlurmError, match="POST nodes/: Invalid node name"):
        await stage.rest.set_fields("w-[0,9]", ["w"], 7)
    shape = (await node_of(stage)).shape
    assert shape is not None
    assert shape.features == {"w"}


CASES = [
    a_node_that_registers_is_up_and_idle,
    a_node_that_slurm_does_not_know_is_an_error,
    a_drain_shows_its_reason_its_time_and_slurmuser,
    a_second_drain_takes_the_reason_over,
    a_persons_reason_that_is_worded_as_the_operators_is_a_persons,
    a_reason_that_is_repeated_on_a_drained_node_keeps_its_signer,
    a_drain_in_the_words_of_a_former_one_has_its_own_time,
    a_resume_lifts_a_drain,
    a_resume_lifts_an_administrators_down_too,
    a_drained_node_is_busy_until_its_job_has_ended,
    a_node_is_busy_while_it_cleans_up,
    a_job_holds_all_its_nodes,
    the_last_task_of_an_array_has_its_number,
    by_the_number_of_an_array_all_its_tasks_end,
    a_heterogeneous_job_ends_as_a_whole_by_its_leader,
    a_component_of_a_heterogeneous_job_ends_alone_by_its_number,
    a_heterogeneous_job_waits_again_as_a_whole,
    an_interactive_job_cannot_be_requeued,
    a_record_with_a_job_is_not_removed,
    a_record_in_a_reservation_is_not_removed,
    a_suspended_job_is_only_in_the_list_of_jobs,
    slurmctld_says_what_time_it_is,
    nothing_new_is_said_without_the_nodes,
    a_wrong_key_is_refused,
    a_signal_ends_no_job_that_takes_it,
    an_update_that_changes_nothing_is_taken,
    features_and_weight_are_updated_together,
    an_update_over_an_unknown_node_changes_those_before_it,
]
