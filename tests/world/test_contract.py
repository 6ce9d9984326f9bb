"""The questions of tests/contract.py, to the fake on which the tests of this folder rest; tests/slurm puts the same ones to real daemons."""

import asyncio
import time
from dataclasses import dataclass, field

import pytest

from soperator.slurmrest.client import SlurmRest
from tests import contract
from tests.world.fake_slurm import FakeSlurm, Refused


@dataclass
class Fake:
    """`contract.Stage` over the fake."""

    slurm: FakeSlurm = field(default_factory=FakeSlurm)
    ran: int = 0

    def __post_init__(self):
        loop, began = asyncio.get_running_loop(), time.time()
        self.slurm.wall = lambda: began + loop.time()
        self.slurm.silence = 1.0
        self.rest = SlurmRest("http://rest", b"key", self.slurm)

    def stranger(self):
        return SlurmRest("http://rest", b"another key", self.slurm)

    async def register(self, *names):
        for name in names:
            self.slurm.set(name, "IDLE", "DYNAMIC_NORM")

    async def run(self, *names, epilog=False):
        self.ran, self.slurm.epilog = self.ran + 1, 4.0 if epilog else 0.0
        self.slurm.run(self.ran, *names, requeue=True, batch=True)
        return self.ran

    async def array(self, *names):
        numbers = self.slurm.run_array(self.ran + 1, *names)
        self.ran += len(numbers)
        return numbers

    async def het(self, *names):
        numbers = self.slurm.run_het(self.ran + 1, *names, requeue=True)
        self.ran += len(numbers)
        return numbers

    async def requeue(self, words):
        try:
            self.slurm.requeue(words)
        except Refused as refused:
            return str(refused)
        return ""

    async def interactive(self, name):
        self.ran += 1
        self.slurm.run(self.ran, name, requeue=True, batch=False)
        return self.ran

    async def suspend(self, job):
        self.slurm.suspend(job)

    async def set(self, name, state, reason):
        self.slurm.administrator(name, state, reason)

    async def reserve(self, name):
        self.slurm.change(self.slurm.nodes[name], add={"RESERVED"})

    async def release(self):
        for node in self.slurm.nodes.values():
            self.slurm.change(node, drop={"RESERVED"})


@pytest.mark.parametrize("case", contract.CASES, ids=lambda case: case.__name__)
async def test_the_fake_slurm(case):
    """It answers as the real one does."""
    stage = Fake()
    try:
        await case(stage)
    finally:
        await stage.rest.close()
