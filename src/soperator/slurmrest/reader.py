"""Lists of slurmrestd read as a stream: each record is handed on as soon as it is there, and nothing of it is kept.

A job is 14 KB of JSON, so fifty thousand are 700 MB, of which there is never more than one piece in memory. slurmrestd begins each record of a list
with the same field, written the same way. So the records are cut there; that a cut is right is for the decoder to say, and where it says no, the next
cut is tried. What a user can write contains no such beginning, for JSON escapes a quotation mark within a text.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import httpx2
import msgspec

from soperator.slurmrest.client import SlurmDenied, SlurmError

_PARSER = "v0.0.42"
#: So many seconds may pass without a byte. slurmrestd writes an answer down before it sends any of it, which takes a second for each thousand jobs.
_PATIENCE = 30.0
_PATIENCE_WITH_JOBS = 180.0
_DENIED = (401, 511)
#: So much of an answer is looked at for the beginning of its list, and of an error.
_HEAD = 1 << 20

T = TypeVar("T")
#: User and token.
Credentials = Callable[[], tuple[str, str]]


class Cut(Generic[T]):
    """Takes the bytes of an answer, and hands on the records of its list `what`; raises SlurmError for what is no such answer."""

    def __init__(self, what: str, type_: type[T], take: Callable[[T], None]) -> None:
        self._what = what
        self._begin = re.compile(rb'"%s"\s*:\s*\[\s*(\{\s*"[^"\\]+"\s*:)' % what.encode())
        self._decoder = msgspec.json.Decoder(type_)
        self._take = take
        self._rest = bytearray()
        self._head = b""
        self._mark = b""
        self._seen = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._rest += chunk
        if not self._mark and not self._find():
            return
        begin, end = 0, self._next(max(1, self._seen))
        while end >= 0:
            if self._one(self._rest[begin:end].rstrip(b", \r\n\t")):
                begin = end
            end = self._next(end + 1)
        del self._rest[:begin]
        self._seen = len(self._rest) - len(self._mark)

    def finish(self) -> dict[str, Any]:
        """Take the last record, and return what the answer says beside the list."""
        whole = self._head + bytes(self._rest)
        try:
            said = _decode(whole, dict[str, Any])
            last = said.pop(self._what, None)
            for each in last or ():
                self._take(msgspec.convert(each, self._decoder.type, strict=False))
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise SlurmError(f"slurmrestd: the answer about {self._what} is not understood: {error}") from error
        if last is None:
            raise SlurmError(f"slurmrestd: the answer has no {self._what}")
        return said

    def _find(self) -> bool:
        found = self._begin.search(self._rest)
        if found is None:
            if len(self._rest) > _HEAD:
                raise SlurmError(f"slurmrestd: the answer has no {self._what}")
            return False
        self._mark, self._head = found[1], bytes(self._rest[: found.start(1)])
        del self._rest[: found.start(1)]
        return True

    def _next(self, since: int) -> int:
        return self._rest.find(self._mark, since)

    def _one(self, record: bytearray) -> bool:
        """Hand a record on; False where it is only a part of one."""
        try:
            self._take(_decode(record, self._decoder.type, self._decoder))
        except msgspec.ValidationError as error:
            raise SlurmError(f"slurmrestd: the answer about {self._what} is not understood: {error}") from error
        except msgspec.DecodeError:
            return False
        return True


def _decode(text: bytes | bytearray, type_: type[T], decoder: msgspec.json.Decoder[T] | None = None) -> T:
    """Decode; bytes that are no UTF-8, which Slurm takes from users and hands on, become U+FFFD."""
    decoder = decoder or msgspec.json.Decoder(type_)
    try:
        return decoder.decode(text)
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        plain = text.decode("utf-8", "replace").encode()
        if plain == text:
            if isinstance(error, msgspec.DecodeError):
                raise
            raise msgspec.DecodeError(str(error)) from error
        return decoder.decode(plain)


@dataclass(frozen=True)
class Answer:
    """What came of one request: its moment by slurmctld's clock, 0 where it has none; whether anything has changed; what it says beside the list."""

    moment: int
    has_news: bool = True
    said: dict[str, Any] | None = None


class Reader:
    """Reads lists of one cluster's slurmrestd as whoever the credentials say."""

    def __init__(
        self, address: str, credentials: Credentials, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self._credentials = credentials
        self._client = httpx2.AsyncClient(
            base_url=f"{address}/slurm/{_PARSER}", timeout=_PATIENCE, transport=transport, verify=False, trust_env=False
        )

    async def records(self, what: str, type_: type[T], take: Callable[[T], None], since: int = 0) -> Answer:
        """Hand on the records of a list; none if nothing has changed since a moment. Raises SlurmError, perhaps after some were handed on."""
        cut = Cut(what, type_, take)
        path = f"{what}/?update_time={since}" if since else f"{what}/"
        patience = _PATIENCE_WITH_JOBS if what == "jobs" else _PATIENCE
        with _told(what):
            async with self._client.stream("GET", path, headers=self._headers(), timeout=patience) as response:
                if response.status_code == httpx2.codes.NOT_MODIFIED:
                    return Answer(since, has_news=False)
                if response.status_code >= httpx2.codes.BAD_REQUEST:
                    raise _refused(what, response.status_code, await response.aread())
                async for chunk in response.aiter_bytes():
                    cut.feed(chunk)
        said = cut.finish()
        if errors := said.get("errors"):
            raise SlurmError(f"slurmrestd: GET {what}/: {_first(errors)}")
        update = said.get("last_update")
        moment = update.get("number") if isinstance(update, dict) else update
        if since and not moment:  # how 24.11 says of jobs that none has changed; one that has none left says a moment
            return Answer(since, has_news=False)
        return Answer(int(moment) if isinstance(moment, int | float) else 0, said=said)

    async def one(self, what: str, name: str, type_: type[T]) -> T:
        """The object `name` of an answer; raises SlurmError."""
        with _told(what):
            response = await self._client.get(f"{what}/", headers=self._headers())
        if response.status_code >= httpx2.codes.BAD_REQUEST:
            raise _refused(what, response.status_code, response.content)
        try:
            return msgspec.convert(_decode(response.content, dict[str, Any])[name], type_, strict=False)
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError) as error:
            raise SlurmError(f"slurmrestd: GET {what}/: the answer is not understood: {error}") from error

    async def close(self) -> None:
        """Drop the connections."""
        await self._client.aclose()

    def _headers(self) -> dict[str, str]:
        user, token = self._credentials()
        # Unless it is named, 24.11 writes JSON with all its blanks, whatever SLURMRESTD_JSON says (src/slurmrestd/operations.c, _resolve_mime).
        accepted = {"Accept": "application/json", "Accept-Encoding": "identity"}
        return {"X-SLURM-USER-NAME": user, "X-SLURM-USER-TOKEN": token, **accepted}


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Tell what goes wrong on the way as a SlurmError."""
    try:
        yield
    except httpx2.TimeoutException as error:
        raise SlurmError(f"slurmrestd: GET {what}/: no answer in time") from error
    except httpx2.HTTPError as error:
        raise SlurmError(f"slurmrestd: GET {what}/: {str(error) or type(error).__name__}") from error


def _refused(what: str, status: int, body: bytes) -> SlurmError:
    if status in _DENIED:
        return SlurmDenied(f"slurmrestd: GET {what}/: HTTP {status}, it does not take our token")
    try:
        said = _first(_decode(body[:_HEAD], dict[str, Any]).get("errors"))
    except msgspec.DecodeError:
        said = ""
    return SlurmError(f"slurmrestd: GET {what}/: {said or f'HTTP {status}'}")


def _first(errors: object) -> str:
    found = errors if isinstance(errors, list) else []
    said = next((each for each in found if isinstance(each, dict)), {})
    return str(said.get("error") or said.get("description") or "it says no more than that it failed")
