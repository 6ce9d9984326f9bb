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
from soperator.slurmrest.parser import PARSER

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
        self._client = httpx2.AsyncClient(
            base_url=f"{address}/slurm/{PARSER}", transport=transport, verify=False, trust_env=False
        )

    async def records(self, what: str, type_: type[T], take: Callable[[T], None], since: int = 0) -> RestAnswer:
        """Pass on the records of a list; none without a change since the given time. Raises SlurmError, perhaps after some were passed on."""
        path = f"{what}/?update_time={since}" if since else f"{what}/"
        request = self._client.build_request("GET", path, headers=self._headers())
        said = await records(self._client, request, what, type_, take, JOBS if what == "jobs" else _OTHERS)
        if said is None:
            return RestAnswer(since, has_news=False)
        update = said.get("last_update")
        moment = update.get("number") if isinstance(update, dict) else update
        if since and not moment:  # how 24.11 reports that no job has changed; an empty queue has a time
            return RestAnswer(since, has_news=False)
        return RestAnswer(int(moment) if isinstance(moment, int | float) else 0, said=said)

    async def one(self, what: str, name: str, type_: type[T]) -> T:
        """Return the object `name` of the answer to GET `what`; raises SlurmError."""
        request = self._client.build_request("GET", f"{what}/", headers=self._headers())
        async with errors_as_slurm_errors(f"GET {what}/", _OTHERS):
            body = await body_of(self._client, request, what, _OTHERS)
        try:
            return msgspec.convert(decode(body, dict[str, Any])[name], type_, strict=False)
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError) as error:
            raise SlurmError(f"slurmrestd: GET {what}/: the answer is invalid: {error}") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _headers(self) -> dict[str, str]:
        user, token = self._credentials()
        # Unless it is named, 24.11 writes JSON with all its blanks, whatever SLURMRESTD_JSON says (src/slurmrestd/operations.c, _resolve_mime).
        accepted = {"Accept": "application/json", "Accept-Encoding": "identity"}
        return {"X-SLURM-USER-NAME": user, "X-SLURM-USER-TOKEN": token, **accepted}
