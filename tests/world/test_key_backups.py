"""Keys that come from a backup, Secret and copy together, after other rotations: daemons that run keep theirs, and no stage locks anybody out."""

import asyncio
import copy
from contextlib import asynccontextmanager

import pytest

from soperator.kube import kinds
from soperator.kube.errors import Unreachable
from soperator.render.parts import labels
from tests.unit.fake_world import Fault, Where
from tests.world.harness import NS, Town, operating, until
from tests.world.test_rotation import CLUSTER, WORKERS, Pods, daemons_begin, keys, settled, stage

AUTH, REST = "demo-auth-key", "demo-jwt-key"
STAGES = {"slurm": ["Known", "Signing", "Settling", "Alone", ""], "munge": ["Laid", "Taken", ""]}
EACH = [(kind, each) for kind, stages in STAGES.items() for each in stages]
AT_AND_AWAY = pytest.mark.parametrize(
    ("kind", "at", "is_away"),
    [*((*each, False) for each in EACH), ("slurm", "Signing", True), ("munge", "Taken", True)],
)
AT = pytest.mark.parametrize(("kind", "at"), EACH, ids=str)


class Daemons(Pods):
    """Daemons that do not answer while the rotation is at one stage, so that it stays there."""

    def __init__(self, town):
        super().__init__()
        self.town, self.held = town, None

    async def execute(self, api, target, command):
        """Do as told, or not."""
        if self.held and stage(self.town) == self.held:
            raise Unreachable(f"{target}: no route to host")
        return await super().execute(api, target, command)


def spec(kind, request=""):
    """The cluster, with a request to rotate."""
    return CLUSTER | {"auth": {"type": kind, **({"rotateRequest": request} if request else {})}}


@asynccontextmanager
async def working(town, daemons):
    """An operator that works, and asks Slurm seldom: minutes pass here."""
    async with operating(town, execute=daemons.execute):
        town.watch._period = 2.0
        yield


async def begin(town, kind):
    """A cluster whose daemons run."""
    await town.up(spec(kind), WORKERS)
    daemons_begin(town, sidecar="munged" if kind == "munge" else "")
    await asyncio.sleep(2)


async def rotate(town, daemons, kind, request, at=""):
    """Rotate until the Secret is at a stage of this request, and stay there if daemons have to answer to leave it."""
    daemons.held = at
    town.apply(kinds.SLURMCLUSTER, "demo", spec(kind, request))
    await until(lambda: (note(town), stage(town)) == (request, at), 300)


def note(town, name=AUTH):
    """The request that is noted on a Secret."""
    return town.find(kinds.SECRET, name)["metadata"].get("annotations", {}).get("slurm.soperator.io/rotation", "")


def backup(town, *names):
    """Secrets with their copies, as a backup has them."""
    return {name: copy.deepcopy(town.find(kinds.SECRET, name)) for each in names for name in (f"{each}-kept", each)}


def restore(town, saved):
    """Put Secrets and copies back as they were."""
    for name, found in saved.items():
        here = town.find(kinds.SECRET, name)["metadata"]
        meta = {**here, "annotations": found["metadata"].get("annotations", {})}
        town.fake.world.replace(Where.at(kinds.SECRET, NS, name), {**found, "metadata": meta}, "backup")


def is_done(town, request):
    """Whether this rotation is carried out, and the cluster says so."""
    told = town.status(kinds.SLURMCLUSTER, "demo").get("conditions") and settled(town)["status"]
    return (note(town), stage(town), told) == (request, "", "True")


def status(town, patch):
    """Change the status by hand, as `kubectl patch --subresource=status` does."""
    town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), {"status": patch}, sub="status")


def accept(town, version):
    """Say that the daemons have the key of this version of the Secret."""
    meta = {"annotations": {labels.ACCEPT_KEY: version}}
    town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), {"metadata": meta})


def data(town, name=AUTH):
    return town.find(kinds.SECRET, name)["data"]


async def quick(town):
    """Let the operator write its status, which it does every few seconds."""
    await asyncio.sleep(10)


@AT_AND_AWAY
async def test_a_backup_from_another_rotation_is_refused(kind, at, is_away):
    """Whatever stage the backup is from; when the right keys are put back the cluster is settled, and can be rotated."""
    daemons = Daemons(town := Town())
    async with working(town, daemons):
        await begin(town, kind)
        await rotate(town, daemons, kind, "one", at)
        saved = backup(town, AUTH)
        await rotate(town, daemons, kind, "two")
        await quick(town)
        mine = backup(town, AUTH)
        if not is_away:
            restore(town, saved)
            await quick(town)
    if is_away:
        restore(town, saved)
    async with working(town, daemons):
        await quick(town)
        said = settled(town)
        assert (said["status"], said["reason"]) == ("False", "OtherKey")
        assert "rotation one" in said["message"]
        assert "rotation two" in said["message"]
        assert data(town) == saved[AUTH]["data"]
        restore(town, mine)
        await quick(town)
        assert settled(town)["status"] == "True"
        await rotate(town, daemons, kind, "three")


@AT
async def test_a_backup_is_refused_at_every_stage_of_a_rotation(kind, at):
    """It is from before it, and the operator would go on from what it says; the key of REST is another one too."""
    daemons = Daemons(town := Town())
    async with working(town, daemons):
        await begin(town, kind)
        await rotate(town, daemons, kind, "one")
        saved = backup(town, AUTH, REST)
        await rotate(town, daemons, kind, "two", at)
        await quick(town)
        mine = backup(town, AUTH, REST)
        restore(town, saved)
        await quick(town)
        assert settled(town)["reason"] == "OtherKey"
        restore(town, mine)
        daemons.held = None
        await until(lambda: is_done(town, "two"), 300)


async def test_the_key_of_rest_from_another_rotation_is_refused():
    """slurmctld would not believe the operator any more when it starts again."""
    daemons = Daemons(town := Town())
    async with working(town, daemons):
        await begin(town, "slurm")
        await rotate(town, daemons, "slurm", "one")
        saved = backup(town, REST)
        await rotate(town, daemons, "slurm", "two")
        await quick(town)
        restore(town, saved)
        await quick(town)
        assert settled(town)["reason"] == "OtherKey"
        assert REST in settled(town)["message"]


@AT
async def test_a_status_that_is_lost_locks_nobody_out(kind, at):
    """A tool that puts objects back without their status, in the middle of a rotation: it goes on to its end."""
    daemons = Daemons(town := Town())
    async with working(town, daemons):
        await begin(town, kind)
        await rotate(town, daemons, kind, "one", at)
    daemons.held = None
    status(town, dict.fromkeys(town.status(kinds.SLURMCLUSTER, "demo")))
    async with working(town, daemons):
        await until(lambda: is_done(town, "one"), 300)
        await rotate(town, daemons, kind, "two")


@AT
async def test_a_status_without_stages_locks_nobody_out(kind, at):
    """So a former operator wrote it, with the digests alone; it may have ended between the Secret and the status."""
    daemons = Daemons(town := Town())
    async with working(town, daemons):
        await begin(town, kind)
        await quick(town)
        before = town.status(kinds.SLURMCLUSTER, "demo")["keyDigests"]
        await rotate(town, daemons, kind, "one", at)
    daemons.held = None
    status(town, {"keyRotations": None, "keyDigests": before})
    async with working(town, daemons):
        await until(lambda: is_done(town, "one"), 300)


async def test_a_person_takes_the_doubt_away_by_naming_the_secret():
    """Where what is remembered came from the backup, and the daemons have the key that is there; a lost status is no such word."""
    daemons = Daemons(town := Town())
    async with working(town, daemons):
        await begin(town, "slurm")
        first = backup(town, AUTH)
        await rotate(town, daemons, "slurm", "one")
        saved = backup(town, AUTH)
        await rotate(town, daemons, "slurm", "two")
        await quick(town)
        restore(town, saved | {f"{AUTH}-kept": first[f"{AUTH}-kept"]})
        accept(town, town.find(kinds.SECRET, AUTH)["metadata"]["resourceVersion"])
        await quick(town)
        assert (settled(town)["reason"], data(town)) == ("OtherKey", saved[AUTH]["data"])
        accept(town, "")
        restore(town, saved)
        await quick(town)
        assert settled(town)["reason"] == "OtherKey"
        status(town, {"keyDigests": None, "keyRotations": None})
        await quick(town)
        assert settled(town)["reason"] == "OtherKey"
        accept(town, "1")
        await quick(town)
        assert settled(town)["reason"] == "OtherKey"
        accept(town, town.find(kinds.SECRET, AUTH)["metadata"]["resourceVersion"])
        await until(lambda: is_done(town, "two"), 300)
        assert keys(town) == ["two"]


@AT_AND_AWAY
async def test_the_right_key_gets_the_note_that_belongs_to_it(kind, at, is_away):
    """Put back by hand from a pod it has no note, and one is from another day: the rotation goes on where it was, and no other begins."""
    daemons = Daemons(town := Town())
    async with working(town, daemons):
        await begin(town, kind)
        await rotate(town, daemons, kind, "one", at)
        await quick(town)
        at, right = stage(town), backup(town, AUTH)
        if not is_away:
            _without_notes(town, right)
            await quick(town)
    if is_away:
        _without_notes(town, right)
    async with working(town, daemons):
        await quick(town)
        assert (note(town), stage(town)) == ("one", at)
        assert data(town) == right[AUTH]["data"]
        daemons.held = None
        await until(lambda: is_done(town, "one"), 300)


def _without_notes(town, saved):
    """What the guide has one do: the Secret is made by hand, and there is no copy."""
    for name in saved:
        town.fake.world.remove(kinds.SECRET, NS, name)
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": AUTH, "namespace": NS}}
    town.fake.world.seed(made | {"data": saved[AUTH]["data"]})


@AT
@pytest.mark.parametrize("refused", ["secrets", "slurmclusters"])
async def test_a_rotation_goes_on_whatever_could_not_be_written(kind, at, refused):
    """An operator that ended after any write is followed by one that knows what was written."""
    daemons = Daemons(town := Town())
    async with working(town, daemons):
        await begin(town, kind)
        if at != STAGES[kind][0]:
            await rotate(town, daemons, kind, "one", STAGES[kind][STAGES[kind].index(at) - 1])
        town.fake.faults += [Fault("patch", refused, 500, "InternalError", "no", times=3)]
        daemons.held = at
        town.apply(kinds.SLURMCLUSTER, "demo", spec(kind, "one"))
        await asyncio.sleep(120 if at in ("Alone", "") else 2)
    town.fake.faults.clear()
    daemons.held = None
    async with working(town, daemons):
        await until(lambda: is_done(town, "one"), 300)
        assert data(town) == data(town, f"{AUTH}-kept")
