"""Lists of slurmrestd read as a stream: the same records as when the whole is decoded, in whatever pieces they come."""

import json

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.slurm.rest_records import JobRecord
from soperator.slurmrest.client import SlurmDenied, SlurmError
from soperator.slurmrest.cut import RecordParser
from soperator.slurmrest.reader import ListReader

NAMES = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ['"job_id":', '{"job_id": 1}', "},{", '\\"', '"jobs":[{']
)
JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "job_id": st.integers(1, 9),
            "account": NAMES,
            "inner": st.lists(st.fixed_dictionaries({"job_id": st.integers(1, 9), "name": NAMES}), max_size=3),
            "partition": NAMES,
        }
    ),
    max_size=5,
)
META = {"meta": {"command": ["jobs"], "slurm": {"release": "24.11.5"}}}
TAIL = {"last_update": {"set": True, "infinite": False, "number": 7}, "errors": []}


def read(body, sizes=(1 << 16,)):
    """The accounts of the jobs, and what stands beside them, of a body that comes in pieces of these sizes in turn."""
    found = []
    cut = RecordParser("jobs", JobRecord, found.append)
    place, turn = 0, 0
    while place < len(body):
        size = sizes[turn % len(sizes)]
        cut.feed(body[place : place + size])
        place, turn = place + size, turn + 1
    return found, cut.finish()


@given(JOBS, st.sampled_from([None, 2, 4]), st.lists(st.integers(1, 200), min_size=1, max_size=4), st.booleans())
def test_the_records_are_those_of_the_whole(jobs, indent, sizes, head_first):
    """However it is written and cut, with texts and inner records that look like beginnings: the same records in the same order."""
    whole = {**META, "jobs": jobs, **TAIL} if head_first else {"jobs": jobs, **META, **TAIL}
    body = json.dumps(whole, indent=indent, ensure_ascii=False).encode()
    found, said = read(body, sizes)
    assert [(each.job_id, each.account, each.partition) for each in found] == [
        (each["job_id"], each["account"], each["partition"]) for each in jobs
    ]
    assert said == {**META, **TAIL}


def test_bytes_that_are_no_text_spoil_one_character():
    """A name that a user gave in another encoding costs its own letters, and no record."""
    body = json.dumps({"jobs": [{"job_id": 1, "account": "X"}, {"job_id": 2, "account": "Y"}], **TAIL}).encode()
    found, _ = read(body.replace(b"X", b"caf\xe9").replace(b"Y", b"\xff\xfe"))
    assert [each.account for each in found] == ["caf�", "��"]


@pytest.mark.parametrize("body", [b'{"errors": []}', b"<html>", b'{"jobs": [{"job_id": 1}, {"job_id"', b""])
def test_what_is_no_such_answer_is_an_error(body):
    """An answer without the list, of somebody else, or that was cut off, does not say that there is nothing."""
    with pytest.raises(SlurmError):
        read(body)


def test_a_record_of_another_shape_is_an_error():
    """A number that has become a text is told, not skipped."""
    with pytest.raises(SlurmError, match="is invalid"):
        read(b'{"jobs": [{"job_id": "x"}, {"job_id": 2}]}')


class Answers(httpx2.AsyncBaseTransport):
    """slurmrestd with one answer; `asked` are the requests."""

    def __init__(self, status, body):
        self.status, self.body, self.asked = status, body, []

    async def handle_async_request(self, request):
        if request.url.path.endswith("/ping/"):
            return httpx2.Response(200)
        self.asked.append(request)
        return httpx2.Response(self.status, content=self.body)


def reader(status, body):
    transport = Answers(status, body if isinstance(body, bytes) else json.dumps(body).encode())
    return ListReader("http://rest", lambda: ("slurmrest", "token"), transport), transport


async def test_a_list_is_asked_for_with_user_and_token():
    """The request names whose token it is, and the answer has its moment."""
    rest, transport = reader(200, {"jobs": [{"job_id": 4}], **TAIL})
    found = []
    answer = await rest.records("jobs", JobRecord, found.append)
    assert [each.job_id for each in found] == [4]
    assert (answer.moment, answer.has_news) == (7, True)
    headers = transport.asked[0].headers
    assert (headers["X-SLURM-USER-NAME"], headers["X-SLURM-USER-TOKEN"]) == ("slurmrest", "token")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (304, b""),
        (200, {"jobs": [], "last_update": {"set": True, "number": 0}, "warnings": [{"description": "No job changes"}]}),
    ],
)
async def test_no_news_is_no_empty_list(status, body):
    """Where nothing has changed since, both as 304 and as 24.11 says it, there is no news, and the moment stays."""
    rest, transport = reader(status, body)
    answer = await rest.records("jobs", JobRecord, lambda _: pytest.fail("a record"), since=5)
    assert (answer.moment, answer.has_news) == (5, False)
    assert "update_time=5" in str(transport.asked[0].url)


@pytest.mark.parametrize(
    ("status", "body", "error", "says"),
    [
        (401, b"", SlurmDenied, "token"),
        (500, {"errors": [{"error": "Unable to contact slurm controller"}]}, SlurmError, "contact slurm controller"),
        (200, {"jobs": [], "errors": [{"description": "Zero Bytes"}]}, SlurmError, "Zero Bytes"),
        (502, b"<html>", SlurmError, "HTTP 502"),
    ],
)
async def test_a_refusal_says_why(status, body, error, says):
    """Slurm's own words, where there are some."""
    rest, _ = reader(status, body)
    with pytest.raises(error, match=says):
        await rest.records("jobs", JobRecord, lambda _: None)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (httpx2.ReadTimeout(""), "no answer within 180 s|no answer within 30 s"),
        (httpx2.ConnectError("refused"), "refused"),
        (httpx2.ReadError(""), "ReadError"),
    ],
)
async def test_a_slurmrestd_that_is_not_there_is_an_error(error, says):
    """One that hangs, is gone, or goes in the middle of an answer."""

    class Gone(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, _):
            raise error

    rest = ListReader("http://rest", lambda: ("slurmrest", "token"), Gone())
    with pytest.raises(SlurmError, match=says):
        await rest.records("jobs", JobRecord, lambda _: None)
    with pytest.raises(SlurmError, match=says):
        await rest.one("diag", "statistics", JobRecord)
