"""Reads lists of one cluster's slurmrestd for a program that only counts: as the user of its credentials, and only lists that have changed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
import msgspec

from soperator.slurmrest.bounded import MIB, Bound
from soperator.slurmrest.cut import decode
from soperator.slurmrest.errors import SlurmError
from soperator.slurmrest.lists import JOBS, body_of, errors_as_slurm_errors, records
from soperator.slurmrest.parser import Parser

_OTHERS = Bound(256 * MIB, 120.0, 30.0)

T = TypeVar("T")
#: User and token.
Credentials = Callable[[], tuple[str, str]]


@dataclass(frozen=True)
class RestAnswer:
    """The result of one request: its time by slurmctld's clock (0 if the answer has none), whether anything has changed, and the rest of the
    answer.
    """

    moment: int
    has_news: bool = True
    said: dict[str, Any] | None = None


class ListReader:
    """A reader of one cluster's slurmrestd, as the user of the credentials."""

    def __init__(
        self, address: str, credentials: Credentials, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self._credentials = credentials
        self._parser = Parser()
        self._client = httpx2.AsyncClient(
            base_url=address,
            transport=transport,
            verify=False,
            trust_env=False,
            event_hooks={"response": [self._parser.watch]},
        )

    async def records(self, what: str, type_: type[T], take: Callable[[T], None], since: int = 0) -> RestAnswer:
        """Pass on the records of a list; none without a change since the given time. Raises SlurmError, perhaps after some were passed on."""
        path = f"{what}/?update_time={since}" if since else f"{what}/"
        bound = JOBS if what == "jobs" else _OTHERS
        request = await self._request(path, bound)
        said = await records(self._client, request, what, type_, take, bound)
        if said is None:
            return RestAnswer(since, has_news=False)
        update = said.get("last_update")
        moment = update.get("number") if isinstance(update, dict) else update
        if since and not moment:  # how 24.11 reports that no job has changed; an empty queue has a time
            return RestAnswer(since, has_news=False)
        return RestAnswer(int(moment) if isinstance(moment, int | float) else 0, said=said)

    async def one(self, what: str, name: str, type_: type[T]) -> T:
        """Return the object `name` of the answer to GET `what`; raises SlurmError."""
        request = await self._request(f"{what}/", _OTHERS)
        async with errors_as_slurm_errors(f"GET {what}/", _OTHERS):
            body = await body_of(self._client, request, what, _OTHERS)
        try:
            return msgspec.convert(decode(body, dict[str, Any])[name], type_, strict=False)
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError) as error:
            raise SlurmError(f"slurmrestd: GET {what}/: the answer is invalid: {error}") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _request(self, path: str, bound: Bound) -> httpx2.Request:
        headers = self._headers()
        parser = await self._parser.choose(self._client, headers, f"GET {path.partition('?')[0]}", bound)
        return self._client.build_request("GET", f"/slurm/{parser}/{path}", headers=headers)

    def _headers(self) -> dict[str, str]:
        user, token = self._credentials()
        # Unless it is named, 24.11 writes JSON with all its blanks, whatever SLURMRESTD_JSON says (src/slurmrestd/operations.c, _resolve_mime).
        accepted = {"Accept": "application/json", "Accept-Encoding": "identity"}
        return {"X-SLURM-USER-NAME": user, "X-SLURM-USER-TOKEN": token, **accepted}
