"""The questions of tests/contract.py, to a real slurmctld through a real slurmrestd; tests/world puts the same ones to the fake."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2
import pytest

from soperator.slurm.node import SOMEBODY
from soperator.slurmrest.bounded import Bound
from soperator.slurmrest.client import SlurmError, SlurmRest
from soperator.slurmrest.parser import PARSERS, Parser
from soperator.slurmrest.token import sign
from tests import contract
from tests.slurm.machine import NEEDS, TRIXIE, Slurm

pytestmark = [
    *NEEDS,
    pytest.mark.skipif(
        not (TRIXIE / "usr/sbin/slurmrestd").exists(), reason=f"no slurmrestd in {TRIXIE}; python3 -m local.slurm_root"
    ),
]
KEY = b"a key of thirty-two bytes or more"
SOCKET = "/run/rest/socket"
CONF = """\
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
Epilog=/etc/slurm/epilog
"""
#: Whoever has the file `slow` in /run has its node clean up for some seconds.
EPILOG = "#!/bin/sh\n[ ! -e /run/slow ] || sleep 4\n"
REST = (
    "SLURM_JWT=daemon SLURMRESTD_SECURITY=disable_unshare_sysv,disable_unshare_files "
    "setpriv --reuid nobody --regid nogroup --clear-groups "
    f"slurmrestd -a rest_auth/jwt -s slurmctld -d {{parser}} unix:{SOCKET}"
)
#: The data parsers of ours that this release has: 24.11 one, 26.05 four.
HAS = [
    each for each in PARSERS if list(TRIXIE.glob(f"usr/lib/*/slurm-wlm/data_parser_{each.replace('.', '_')}.so"))
] or list(PARSERS[:1])


@dataclass
class Real:
    """`contract.Stage` over a machine with Slurm."""

    slurm: Slurm
    rest: SlurmRest
    parsers: list[str]

    def stranger(self) -> SlurmRest:
        """A client whose key slurmctld does not have."""
        return connect(self.slurm, b"another key of thirty-two bytes too")

    async def register(self, *names: str) -> None:
        await asyncio.to_thread(self.slurm.starts, *names, is_saved=False)

    async def run(self, *names: str, epilog: bool = False) -> int:
        self.slurm.sh("touch /run/slow" if epilog else "rm -f /run/slow")
        words = f"-N{len(names)} --exclusive -w {','.join(names)}"
        number = self.slurm.sh(
            f"sbatch --parsable --requeue {words} -o /dev/null --wrap 'trap : CONT; sleep 300 & wait; wait'"
        )
        await asyncio.to_thread(self.slurm.until, f"squeue -h -j {number.strip()} -o %T", "RUNNING")
        return int(number)

    async def array(self, *names: str) -> list[int]:
        words = f"--array=0-{len(names) - 1} -N1 --exclusive -o /dev/null --wrap 'trap : CONT; sleep 300 & wait; wait'"
        number = int(self.slurm.sh(f"sbatch --parsable {words}"))
        asked = f"squeue -h -t R -j {number} -o %A"
        await asyncio.to_thread(self.slurm.until, f"{asked} | wc -l", str(len(names)))
        return [int(each) for each in self.slurm.sh(asked).split()]

    async def het(self, *names: str) -> list[int]:
        parts = " : ".join(f"-N1 --exclusive --requeue -w {name}" for name in names)
        number = int(
            self.slurm.sh(f"sbatch --parsable -o /dev/null {parts} --wrap 'trap : CONT; sleep 300 & wait; wait'")
        )
        asked = f"squeue -h -t R -j {number} -o %A"
        await asyncio.to_thread(self.slurm.until, f"{asked} | wc -l", str(len(names)))
        return sorted(int(each) for each in self.slurm.sh(asked).split())

    async def requeue(self, words: str) -> str:
        return self.slurm.sh(f"scontrol requeue {words}")

    async def interactive(self, name: str) -> int:
        self.slurm.sh(f"setsid salloc -Q -w {name} --no-shell >/run/said 2>&1")
        await asyncio.to_thread(self.slurm.until, "squeue -h -o %T", "RUNNING")
        return int(self.slurm.sh("squeue -h -o %A"))

    async def suspend(self, job: int) -> None:
        assert self.slurm.sh(f"scontrol suspend {job}") == ""
        await asyncio.to_thread(self.slurm.until, f"squeue -h -j {job} -o %T", "SUSPENDED")

    async def set(self, name: str, state: str, reason: str) -> None:
        assert self.slurm.sh(f"scontrol update NodeName={name} State={state} Reason='{reason}'") == ""

    async def begins_again(self, how: str) -> None:
        if how == "reconfigure":
            assert self.slurm.sh("scontrol reconfigure") == ""
            await asyncio.sleep(2)
        else:
            await asyncio.to_thread(self.slurm.begins, signal=how)

    async def without_name(self, user: str) -> None:
        self.slurm.sh(f"sed -i /^{user}:/d /etc/passwd")

    async def reserve(self, name: str) -> None:
        words = f"ReservationName=kept Nodes={name} StartTime=now Duration=60 Users=root"
        assert "created" in self.slurm.sh(f"scontrol create {words}")

    async def release(self) -> None:
        assert self.slurm.sh("scontrol delete ReservationName=kept") == ""


def connect(slurm: Slurm, key: bytes) -> SlurmRest:
    """A client of the machine's slurmrestd."""
    return SlurmRest("http://rest", key, httpx2.AsyncHTTPTransport(uds=f"/proc/{slurm.pid}/root{SOCKET}"))


@pytest.fixture(params=[*HAS, ",".join(HAS)] if len(HAS) > 1 else HAS)
async def stage(slurm: Slurm, request: pytest.FixtureRequest) -> AsyncIterator[Real]:
    """slurmctld and slurmrestd with one data parser, or with all of ours, without a node."""
    slurm.sh("cat > /etc/slurm/more.conf", CONF)
    slurm.sh("cat > /etc/slurm/epilog; chmod 755 /etc/slurm/epilog", EPILOG)
    slurm.sh("cat > /etc/slurm/jwt.key; chown slurm /etc/slurm/jwt.key; chmod 600 /etc/slurm/jwt.key", KEY.decode())
    slurm.begins()
    slurm.sh("mkdir -m 777 /run/rest")
    slurm.sh(f"setsid sh -c '{REST.format(parser=request.param)}' >/run/rest.log 2>&1 </dev/null &")
    rest = connect(slurm, KEY)
    for _ in range(100):
        try:
            await rest.nodes()
            break
        except SlurmError:
            await asyncio.sleep(0.2)
    else:
        pytest.fail(slurm.sh("cat /run/rest.log"))
    yield Real(slurm, rest, request.param.split(","))
    await rest.close()


async def test_the_client_speaks_the_newest_parser_that_slurmrestd_has(stage: Real) -> None:
    """What slurmrestd has not it answers with 404, and `-d` takes several of them."""
    found = Parser()
    transport = httpx2.AsyncHTTPTransport(uds=f"/proc/{stage.slurm.pid}/root{SOCKET}")
    headers = {"X-SLURM-USER-NAME": "slurm", "X-SLURM-USER-TOKEN": sign(KEY, "slurm", int(time.time()) - 5, 600)}
    async with httpx2.AsyncClient(base_url="http://rest", transport=transport) as client:
        chosen = await found.choose(client, headers, "GET nodes/", Bound(1 << 20, 10.0, 10.0))
        unknown = await client.get(
            "/slurm/v0.0.41/ping/" if "v0.0.42" in HAS else "/slurm/v0.0.42/ping/", headers=headers
        )
    assert (chosen, unknown.status_code) == (stage.parsers[-1], 404)


@pytest.mark.parametrize("case", contract.CASES, ids=lambda case: case.__name__)
async def test_the_real_slurm(stage: Real, case) -> None:
    """What the operator counts on is so."""
    await case(stage)


async def test_slurmctld_signs_what_it_says_of_a_silent_node_as_slurmuser(stage: Real) -> None:
    """So that no lost machine looks like one that a person took out of service."""
    await stage.register("w-0")
    stage.slurm.sh("cat >> /etc/slurm/more.conf", "SlurmdTimeout=6\n")
    await stage.begins_again("TERM")
    stage.slurm.sh("pkill -KILL '^slurmd$'")

    async def is_down() -> bool:
        try:
            return (await contract.node_of(stage)).is_down
        except SlurmError:
            return False

    await contract.until(is_down, 60)
    node = await contract.node_of(stage)
    assert (node.reason.partition(" [")[0], node.reason_by) == ("Not responding", "slurm")
    assert not node.is_administrators


@pytest.mark.parametrize("how", ["reconfigure", "TERM", "KILL"])
async def test_who_signed_a_reason_is_known_after_slurmctld_began_again(stage: Real, how: str) -> None:
    """It is in slurmctld's state, for a drain of the operator and one of a person."""
    await stage.register("w-0", "w-1")
    await stage.rest.drain("w-0", contract.REASON)
    await stage.set("w-1", "DRAIN", contract.REASON)
    await asyncio.sleep(6)  # slurmctld saves its nodes some seconds later
    await stage.begins_again(how)

    async def is_back() -> bool:
        try:
            return len(await stage.rest.nodes()) == 2
        except SlurmError:
            return False

    await contract.until(is_back)
    found = await stage.rest.nodes()
    assert (found["w-0"].reason_by, found["w-0"].is_ours) == ("slurm", True)
    assert (found["w-1"].reason_by, found["w-1"].is_ours, found["w-1"].is_administrators) == ("root", False, True)


async def test_a_signer_whom_slurmrestd_cannot_name_has_no_name(stage: Real) -> None:
    """slurmrestd's pod knows the users of its image alone: a person who is no user there signs so."""
    await stage.register("w-0")
    await stage.rest.drain("w-0", "bad disk")
    await stage.without_name("slurm")
    node = await contract.node_of(stage)
    assert (node.reason, node.reason_by) == ("bad disk", SOMEBODY)
    assert node.is_administrators
