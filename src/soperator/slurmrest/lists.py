"""Requests one list of slurmrestd and reads it record by record, within bounds on bytes and time, so that memory holds one record at a time."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import httpx2
import msgspec

from soperator.slurmrest.bounded import MIB, Bound, TooLarge, chunks, opened, whole
from soperator.slurmrest.cut import RecordParser, decode, first_error
from soperator.slurmrest.errors import SlurmDenied, SlurmError

#: slurmrestd composes the whole answer before it sends any of it, which takes a second for each thousand jobs; a job is 14 KB.
JOBS = Bound(4096 * MIB, 240.0, 180.0)
#: The answer of 24.11 to a missing token, or to one that it cannot verify.
_DENIED = (401, 511)
#: So much of an answer that is an error is read.
_MESSAGE = MIB

T = TypeVar("T")


async def records(
    client: httpx2.AsyncClient,
    request: httpx2.Request,
    what: str,
    type_: type[T],
    take: Callable[[T], None],
    bound: Bound,
) -> dict[str, Any] | None:
    """Pass on the records of the list `what`, and return the rest of the answer; None if Slurm reports no change.

    Raises SlurmError, perhaps after some records were passed on.
    """
    cut = RecordParser(what, type_, take)
    async with errors_as_slurm_errors(f"GET {what}/", bound), opened(client, request, bound) as response:
        if response.status_code == httpx2.codes.NOT_MODIFIED:
            return None
        await check(response, f"GET {what}/")
        async for chunk in chunks(response, bound.most):
            cut.feed(chunk)
    return cut.finish()


async def body_of(client: httpx2.AsyncClient, request: httpx2.Request, what: str, bound: Bound) -> bytearray:
    """Return the body of a successful answer; raises SlurmError for any other."""
    async with opened(client, request, bound) as response:
        await check(response, f"GET {what}/")
        return await whole(response, bound.most)


async def check(response: httpx2.Response, asked: str) -> None:
    """Raise SlurmError for an answer with the status of an error, with Slurm's own message if it has one."""
    if response.status_code in _DENIED:
        raise SlurmDenied(f"slurmrestd: {asked}: HTTP {response.status_code}, it rejects the operator's token")
    if response.status_code < httpx2.codes.BAD_REQUEST:
        return
    try:
        said = first_error(decode(await whole(response, _MESSAGE), dict[str, Any]).get("errors"))
    except (TooLarge, msgspec.DecodeError):
        said = ""
    raise SlurmError(f"slurmrestd: {asked}: {said or f'HTTP {response.status_code}'}")


@contextlib.asynccontextmanager
async def errors_as_slurm_errors(asked: str, bound: Bound) -> AsyncIterator[None]:
    """Raise errors of the transport as SlurmError, with the request and the cause."""
    try:
        yield
    except httpx2.TimeoutException as error:
        raise SlurmError(f"slurmrestd: {asked}: no answer within {bound.silence:.0f} s") from error
    except TimeoutError as error:
        raise SlurmError(f"slurmrestd: {asked}: the answer was not complete within {bound.seconds:.0f} s") from error
    except httpx2.HTTPError as error:
        raise SlurmError(f"slurmrestd: {asked}: {str(error) or type(error).__name__}") from error
    except TooLarge as error:
        raise SlurmError(f"slurmrestd: {asked}: {error}") from error
