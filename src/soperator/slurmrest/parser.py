"""The versions of slurmrestd's data parser that this release reads, defined once, and the choice of one for a slurmrestd.

Each release of Slurm has four of them and drops the oldest: 24.11 has v0.0.39 to v0.0.42, 26.05 has v0.0.42 to v0.0.45. What the operator reads and
writes is the same in all of `PARSERS` (tests/slurm/test_contract.py plays them). The images load those of the list that their release has
(images/slurm/parser; a test compares the lists).
"""

import httpx2

from soperator.slurmrest.bounded import Bound, opened
from soperator.slurmrest.errors import SlurmError
from soperator.slurmrest.lists import check, errors_as_slurm_errors

#: Oldest first.
PARSERS = ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")


class Parser:
    """The parser with which one client speaks to its slurmrestd: the newest that both know, asked for once."""

    def __init__(self) -> None:
        self._chosen = ""

    async def watch(self, response: httpx2.Response) -> None:
        """Take note of a response; after 404 the client asks again, because the slurmrestd may be of another release now."""
        if response.status_code == httpx2.codes.NOT_FOUND:
            self._chosen = ""

    async def choose(self, client: httpx2.AsyncClient, headers: dict[str, str], asked: str, bound: Bound) -> str:
        """Return the parser, such as v0.0.45; raises SlurmError about the request `asked`, also if slurmrestd has none of `PARSERS`.

        Each question has the bound of that request.
        """
        if not self._chosen:
            self._chosen = await _newest(client, headers, asked, bound)
        return self._chosen


async def _newest(client: httpx2.AsyncClient, headers: dict[str, str], asked: str, bound: Bound) -> str:
    for parser in reversed(PARSERS):
        request = client.build_request("GET", f"/slurm/{parser}/ping/", headers=headers)
        async with errors_as_slurm_errors(asked, bound), opened(client, request, bound) as response:
            if response.status_code == httpx2.codes.NOT_FOUND:
                continue
            await check(response, asked)
            return parser
    raise SlurmError(
        f"slurmrestd: {asked}: it has none of the data parsers {', '.join(PARSERS)}: take an image with Slurm 24.11 "
        "to 26.05, or an operator that knows this release"
    )
