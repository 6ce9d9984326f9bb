"""Files of Slurm that a spec refers to: a change goes through the same transaction as an edit, and what is missing changes nothing."""

import pytest

from soperator.kube import kinds
from tests.world.harness import NS, Town, operating
from tests.world.test_cluster import CLUSTER, WORKERS
from tests.world.test_configuration import applied, conf

REF = {"configMapKeyRef": {"name": "site", "key": "mpi"}}
SPEC = CLUSTER | {"config": {"files": [{"name": "mpi.conf", **REF}]}}


def give(town, **data):
    """Let the ConfigMap of the site have this data, with no label of the operator's."""
    if town.find(kinds.CONFIGMAP, "site"):
        town.fake.world.change(kinds.CONFIGMAP, (NS, "site"), {"data": data})
    else:
        meta = {"name": "site", "namespace": NS}
        town.fake.world.seed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})


def files(town):
    """The mounted files."""
    return town.find(kinds.CONFIGMAP, "demo-config")["data"]


async def looks(town, spec=SPEC, seconds=31.0):
    """Let so much time go by that the operator reads the ConfigMap again."""
    town.later += seconds
    town.apply(kinds.SLURMCLUSTER, "demo", spec)
    meta = {"annotations": {"example.com/now": str(town.later)}}
    town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), {"metadata": meta})
    await town.settle()


@pytest.fixture
async def town():
    """An operator over a cluster that is up with a file from a ConfigMap."""
    async with operating(Town()) as made:
        give(made, mpi="PMIxDebug=1\n")
        await made.up(SPEC, WORKERS)
        yield made


async def test_a_configmap_that_changes_is_tried_and_handed_out(town):
    """A trial goes first, and slurmctld is told to read it; no pod of slurmctld is replaced."""
    assert files(town)["mpi.conf"] == "PMIxDebug=1\n"
    before = town.find(kinds.POD, "demo-controller-0")["metadata"]["uid"]
    give(town, mpi="PMIxDebug=2\n")
    await looks(town)
    assert files(town)["mpi.conf"] == "PMIxDebug=1\n"
    assert applied(town)[:2] == ("False", "Trying")
    town.trial_ends()
    await town.settle(quiet=1.2)
    assert files(town)["mpi.conf"] == "PMIxDebug=2\n"
    assert applied(town)[:2] == ("True", "Applied")
    assert town.slurm.asked == ["GET reconfigure/"]
    assert town.find(kinds.POD, "demo-controller-0")["metadata"]["uid"] == before


async def test_what_a_trial_refuses_of_a_configmap_reaches_no_daemon(town):
    """The former content stays until the ConfigMap is corrected."""
    give(town, mpi="Nonsense=2\n")
    await looks(town)
    town.trial_ends("slurmctld: fatal: mpi.conf: bad")
    await town.settle(quiet=1.2)
    assert files(town)["mpi.conf"] == "PMIxDebug=1\n"
    assert applied(town)[1] == "Refused"
    give(town, mpi="PMIxDebug=1\n")
    await looks(town)
    assert applied(town)[:2] == ("True", "Applied")


@pytest.mark.parametrize("how", ["gone", "without the key"])
async def test_a_configmap_that_vanishes_changes_nothing_and_is_reported(town, how):
    """Its last content stays, also for another edit of the spec; once it is back all is well."""
    if how == "gone":
        town.fake.world.remove(kinds.CONFIGMAP, NS, "site")
    else:
        town.fake.world.change(kinds.CONFIGMAP, (NS, "site"), {"data": {"mpi": None, "other": "x"}})
    await looks(town)
    status, reason, said = applied(town)
    assert (status, reason) == ("False", "FilesMissing")
    assert said.startswith("spec.config.files[0].configMapKeyRef: ConfigMap site ")
    assert "its last content stays in use" in said
    assert not [each for each in town.names(kinds.POD) if "trial" in each]
    edited = SPEC | {"config": SPEC["config"] | {"extraLines": {"slurm": "MaxStepCount=5"}}}
    await looks(town, edited, 6.0)
    town.trial_ends()
    await town.settle(quiet=1.2)
    assert "MaxStepCount=5" in conf(town)
    assert files(town)["mpi.conf"] == "PMIxDebug=1\n"
    give(town, mpi="PMIxDebug=1\n")
    await looks(town, edited, 6.0)
    assert applied(town)[:2] == ("True", "Applied")


async def test_an_operator_that_starts_while_a_configmap_is_missing_keeps_its_content():
    """It is in the files that slurmctld runs with."""
    made = Town()
    async with operating(made):
        give(made, mpi="PMIxDebug=1\n")
        await made.up(SPEC, WORKERS)
    before = files(made)
    made.fake.world.remove(kinds.CONFIGMAP, NS, "site")
    async with operating(made):
        await made.settle(quiet=0.5)
        assert files(made) == before
        assert applied(made)[1] == "FilesMissing"
        assert not [each for each in made.names(kinds.POD) if "trial" in each]


async def test_a_cluster_whose_configmap_is_not_there_yet_says_so_and_starts_once_it_is():
    """Nothing is written without the file."""
    async with operating(Town()) as made:
        made.apply(kinds.SLURMCLUSTER, "demo", SPEC)
        await made.settle()
        assert made.find(kinds.CONFIGMAP, "demo-config") is None
        assert applied(made)[:2] == ("False", "FilesMissing")
        assert "ConfigMap site does not exist in this namespace: create it" in applied(made)[2]
        give(made, mpi="PMIxDebug=1\n")
        await looks(made, SPEC, 6.0)
        assert files(made)["mpi.conf"] == "PMIxDebug=1\n"


async def test_a_script_of_a_configmap_that_no_kernel_starts_is_not_handed_out(town):
    """Every node that takes a job would be drained; the message names the line."""
    spec = CLUSTER | {
        "config": SPEC["config"] | {"prolog": [{"name": "x", "configMapKeyRef": {"name": "site", "key": "p"}}]}
    }
    give(town, mpi="PMIxDebug=1\n", p="echo")
    await looks(town, spec)
    status, reason, said = applied(town)
    assert (status, reason) == ("False", "FilesMissing")
    assert "spec.config.prolog[0].configMapKeyRef, line 1" in said
    assert not [each for each in town.names(kinds.POD) if "trial" in each]
    give(town, mpi="PMIxDebug=1\n", p="#!/bin/sh\nexit 0\n")
    await looks(town, spec)
    town.trial_ends()
    await town.settle(quiet=1.2)
    assert files(town)["prolog-x"] == "#!/bin/sh\nexit 0\n"
