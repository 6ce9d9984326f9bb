"""The client of slurmrestd: what it asks for, and what it takes for an answer."""

import json

import httpx2
import pytest

from soperator.slurmrest.client import SlurmError, SlurmRest
from soperator.slurmrest.parser import PARSERS


class Answers(httpx2.AsyncBaseTransport):
    """slurmrestd with answers that a test sets; `asked` are the URLs."""

    def __init__(self, *answers, parsers=("v0.0.42",)):
        self.answers, self.asked, self.parsers, self.pings = list(answers), [], parsers, []

    async def handle_async_request(self, request):
        if request.url.path.endswith("/ping/"):
            self.pings.append(request.url.path.split("/")[2])
            return httpx2.Response(200 if self.pings[-1] in self.parsers else 404, content=b"{}")
        self.asked.append(str(request.url))
        status, body = self.answers.pop(0)
        return httpx2.Response(status, content=body if isinstance(body, bytes) else json.dumps(body).encode())


def nodes(*names, state="IDLE"):
    number = {"set": True, "infinite": False, "number": 1795293094}
    found = [{"name": name, "state": [state], "reason": "", "cpus": 64, "boot_time": number} for name in names]
    return 200, {"nodes": found, "errors": [], "last_update": number}


def client(*answers):
    transport = Answers(*answers)
    return SlurmRest("http://rest", b"key", transport), transport


async def test_a_look_has_the_moment_of_the_answer():
    """Nodes by name, and the time as slurmctld has it."""
    rest, _ = client(nodes("w-0", "w-1"))
    seen = await rest.fetch_nodes()
    assert list(seen.nodes) == ["w-0", "w-1"]
    assert (seen.moment, seen.version) == (1795293094, "")


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"slurm": {"release": "26.05.5"}}, "26.05.5"),
        ({"slurm": {"release": "24.11.0-0rc1"}}, "24.11.0-0rc1"),
        ({"slurm": {"release": "24.11.5\nno"}}, ""),
        ({"slurm": {"release": 24.11}}, ""),
        ({"slurm": []}, ""),
        ([], ""),
        (None, ""),
    ],
)
async def test_a_look_has_the_version_that_the_answer_names(meta, found):
    """What is no version is none."""
    status, answer = nodes("w-0")
    rest, _ = client((status, answer | {"meta": meta}))
    assert (await rest.fetch_nodes()).version == found


async def test_a_node_that_is_the_same_is_the_same_object():
    """Whoever read something from it need not read it again."""
    rest, _ = client(nodes("w-0", "w-1"), nodes("w-0"), nodes("w-0", state="DOWN"))
    first, second, third = [await rest.nodes() for _ in range(3)]
    assert second["w-0"] is first["w-0"]
    assert third["w-0"].is_down


async def test_only_304_means_that_nothing_has_changed():
    """slurmrestd 24.11 fails when nodes have changed and partitions have not; what cannot be told is a change."""
    failed = 500, {"errors": [{"error": "Unspecified error", "description": "Unable to query partitions"}]}
    rest, transport = client((304, b""), failed, nodes("w-0"), (401, b"no"))
    assert [await rest.has_changed(7) for _ in range(4)] == [False, True, True, True]
    assert transport.asked[0].endswith("/slurm/v0.0.42/nodes/?update_time=7")


async def test_without_a_moment_nobody_is_asked():
    """There is nothing that could be unchanged."""
    rest, transport = client()
    assert await rest.has_changed(0)
    assert transport.asked == []


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, {"errors": [{"error": "Protocol authentication error"}]}, "Protocol authentication error"),
        (500, {"errors": []}, "HTTP 500"),
        (502, b"<html>", "HTTP 502"),
        (200, b"<html>", "not a JSON object"),
        (200, {"nodes": [{"state": ["IDLE"]}]}, "name"),
    ],
)
async def test_every_answer_that_is_not_plainly_a_success_is_an_error(status, body, said):
    """It is told with what was asked for."""
    rest, _ = client((status, body))
    with pytest.raises(SlurmError, match=f"GET nodes/: .*{said}"):
        await rest.nodes()


@pytest.mark.parametrize("body", [{}, {"errors": []}, {"nodes": []}])
async def test_an_answer_without_jobs_does_not_say_that_there_are_none(body):
    """Whoever counts his jobs by it would submit each of them twice."""
    rest, _ = client((200, body), (200, body))
    with pytest.raises(SlurmError, match="GET jobs/: the answer has no field jobs"):
        await rest.jobs()
    with pytest.raises(SlurmError, match="GET jobs/: the answer has no field jobs"):
        await rest.runs("soperator-")


async def test_an_empty_list_of_jobs_says_that_there_are_none():
    """Also where it is written as null."""
    rest, _ = client((200, {"jobs": []}), (200, {"jobs": None}))
    assert [await rest.jobs(), await rest.jobs()] == [[], []]


async def test_a_warning_goes_to_the_batch_script_too():
    """Without FULL_JOB slurmctld sends it to the steps alone."""
    rest, transport = client((200, {}))
    await rest.signal(7, "USR1")
    assert transport.asked == ["http://rest/slurm/v0.0.42/job/7?signal=USR1&flags=FULL_JOB"]


@pytest.mark.parametrize(
    ("body", "said"),
    [({"jobs": [], "errors": [{"description": "Zero Bytes"}]}, "Zero Bytes"), ({"errors": []}, "has no field jobs")],
)
async def test_an_answer_about_one_job_that_is_no_success_does_not_say_that_it_has_ended(body, said):
    """24.11 answers some failures with 200; whoever takes them for the end of the job lets its node go."""
    rest, _ = client((200, body))
    with pytest.raises(SlurmError, match=said):
        await rest.job(7)


async def test_the_newest_parser_that_both_know_is_taken_and_asked_for_once():
    """slurmrestd of 26.05 has four of ours, that of 24.11 one; a parser of a later release is not asked for."""
    transport = Answers(nodes("w-0"), nodes("w-0"), parsers=("v0.0.42", "v0.0.43", "v0.0.45", "v0.0.46"))
    rest = SlurmRest("http://rest", b"key", transport)
    await rest.fetch_nodes()
    await rest.fetch_nodes()
    assert transport.asked == ["http://rest/slurm/v0.0.45/nodes/"] * 2
    assert transport.pings == ["v0.0.45"]


async def test_a_slurmrestd_of_another_release_is_asked_again():
    """After an image was put back its slurmrestd lacks the newest parser; the request fails, and the next one works."""
    transport = Answers(nodes("w-0"), (404, b"not found"), nodes("w-0"), parsers=PARSERS)
    rest = SlurmRest("http://rest", b"key", transport)
    await rest.fetch_nodes()
    transport.parsers = PARSERS[:1]
    with pytest.raises(SlurmError, match="HTTP 404"):
        await rest.fetch_nodes()
    assert list((await rest.fetch_nodes()).nodes) == ["w-0"]
    assert transport.asked[-1] == f"http://rest/slurm/{PARSERS[0]}/nodes/"


async def test_a_slurmrestd_without_a_parser_of_ours_is_an_error_with_a_remedy():
    """The message names the request, the parsers and what to do."""
    rest = SlurmRest("http://rest", b"key", Answers(parsers=("v0.0.41",)))
    with pytest.raises(SlurmError, match=r"GET nodes/: it has none of the data parsers v0\.0\.42, .*take an image"):
        await rest.nodes()
