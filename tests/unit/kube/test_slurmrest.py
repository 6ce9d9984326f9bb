"""slurmrestd's answers: whatever is not plainly a success is an error, in words that a person can act on."""

import httpx2
import pytest

from soperator.slurmrest.client import SlurmError, SlurmRest


class Answers(httpx2.AsyncBaseTransport):
    """A service that always answers so."""

    def __init__(self, answer):
        self.answer = answer

    async def handle_async_request(self, request):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def asked(answer):
    """What asking for the nodes comes to."""
    client = SlurmRest("http://rest", b"key", Answers(answer))
    try:
        return await client.nodes()
    finally:
        await client.close()


async def test_an_answer_with_nodes_is_read():
    """Also one that says that there are none."""
    assert list(await asked(httpx2.Response(200, json={"nodes": [{"name": "a"}], "errors": []}))) == ["a"]
    assert await asked(httpx2.Response(200, json={"nodes": []})) == {}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx2.ReadTimeout(""), "GET nodes/: no answer within 10 s"),
        (httpx2.ConnectError("refused"), "GET nodes/: refused"),
        (httpx2.Response(500, text="<html>oops</html>"), "GET nodes/: HTTP 500$"),
        (httpx2.Response(503), "GET nodes/: HTTP 503$"),
        (httpx2.Response(500, json={"errors": [{"error": "Access denied"}]}), "GET nodes/: Access denied"),
        (httpx2.Response(200, json={"errors": [{"description": "no controller"}]}), "GET nodes/: no controller"),
        (httpx2.Response(200, text="welcome"), "GET nodes/: HTTP 200, but the answer is not a JSON object"),
        (httpx2.Response(200, json=[]), "not a JSON object"),
        (httpx2.Response(200), "the answer has no field nodes"),
    ],
)
async def test_anything_else_is_an_error_that_says_what_it_was(answer, said):
    """A silence, an error, an answer of somebody else, and one without what was asked for."""
    with pytest.raises(SlurmError, match=said):
        await asked(answer)
