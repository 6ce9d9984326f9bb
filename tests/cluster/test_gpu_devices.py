"""A job's /dev has the GPUs that Slurm gave to it, and no others: on made-up devices of the Nodes and a made-up resource of Kubernetes.

Nobody writes gres.conf: the operator's lines name what each worker has found. The worker tells which job has which GPU, and what else jobs use.
"""

import json
import os
import re
import stat
from collections.abc import Iterator

import pytest

from local import demo
from local.demo import STATE
from tests.cluster.conftest import make_user
from tests.cluster.escape.conftest import state_claim
from tests.cluster.lab import Lab

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

RESOURCE = "example.com/gpu"
#: The devices are /dev/null's and its kin: the container runtime lets every container use those.
DEVICES = {"nvidia0": 3, "nvidia1": 5, "nvidiactl": 7}
LIST = "ls /dev | grep nvidia | xargs"


@pytest.fixture(scope="module")
def gpus(lab: Lab) -> Iterator[Lab]:
    """A cluster on the demo's jail with one node that has two GPUs."""
    if not lab.target.is_local:
        pytest.skip("the devices of the Nodes are this machine's")
    make_user(lab, "alice")
    folder = STATE / "gpus"
    folder.mkdir(exist_ok=True)
    for name, minor in DEVICES.items():
        (folder / name).unlink(missing_ok=True)
        os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        (folder / name).chmod(0o666)
    patch = json.dumps([{"op": "add", "path": "/status/capacity/example.com~1gpu", "value": "2"}])
    for node in json.loads(lab.kubectl("get", "nodes", "-o", "json"))["items"]:
        lab.kubectl("patch", "node", node["metadata"]["name"], "--subresource=status", "--type=json", "-p", patch)
    made = Lab(lab.target, lab.namespace, "gpus", lab.timings)
    try:
        begin(made, str(folder))
        made.wait_available()
        yield made
    finally:
        lab.kubectl("delete", "nodeset", "gpu", "--ignore-not-found", "--timeout=60s")
        lab.kubectl("delete", "slurmcluster", "gpus", "--ignore-not-found", "--timeout=60s")
        lab.kubectl("delete", "persistentvolumeclaim", "gpus-state", "--ignore-not-found", "--wait=false")
        lab.kubectl("delete", "persistentvolume", f"{lab.namespace}-gpus-state", "--ignore-not-found", "--wait=false")


def begin(made: Lab, folder: str) -> None:
    """Apply the cluster and its NodeSet."""
    claim = {"apiVersion": "v1", "kind": "List", "items": state_claim(made)}
    made.kubectl("apply", "-f", "-", stdin=json.dumps(claim))
    cluster = {
        "jail": {"claim": {"name": "demo-jail"}, "populate": "Never"},
        "controller": {"state": {"name": "gpus-state"}},
        "login": {"rootAuthorizedKeys": [demo.public_key()]},
        "metrics": {"jobs": True},
    }
    nodeset = {
        "clusterRef": {"name": "gpus"},
        "replicas": 1,
        "resources": {"requests": {"cpu": "50m", "memory": "2Gi"}, "limits": {"cpu": "4"}},
        "gpu": {"vendor": "nvidia", "count": 2, "resourceName": RESOURCE},
        "volumes": [{"name": each, "hostPath": {"path": f"{folder}/{each}", "type": "CharDevice"}} for each in DEVICES],
        "volumeMounts": [{"name": each, "mountPath": f"/dev/{each}"} for each in DEVICES],
    }
    for kind, name, spec in (("SlurmCluster", "gpus", cluster), ("NodeSet", "gpu", nodeset)):
        done = made.apply(kind, name, spec)
        assert done.returncode == 0, done.stderr


def test_a_job_without_gpus_sees_none(gpus: Lab) -> None:
    """The device that all GPUs share is there, for it is nobody's."""
    assert gpus.ssh("alice", f'srun sh -c "{LIST}"').split() == ["nvidiactl"]


def test_a_job_sees_and_opens_the_gpu_that_it_was_given(gpus: Lab) -> None:
    """It is the one that Slurm names, also to root of the jail."""
    look = f"given=${{SLURM_JOB_GPUS:-$SLURM_STEP_GPUS}}; echo $given; {LIST}; : > /dev/nvidia$given && echo opened"
    for user in ("alice", "root"):
        given, *devices, opened = gpus.ssh(user, f"srun --gres=gpu:1 sh -c '{look}'").split()
        assert (sorted(devices), opened) == ([f"nvidia{given}", "nvidiactl"], "opened")


def test_two_jobs_at_once_see_different_gpus_and_one_job_may_have_both(gpus: Lab) -> None:
    """Nothing of the one's is in the other's /dev; afterwards a job that asks for both sees both."""
    script = f"{LIST}; sleep 3"
    pair = f"srun --gres=gpu:1 sh -c '{script}' > one & srun --gres=gpu:1 sh -c '{script}' > two; wait; cat one two; rm one two"
    seen = [each for each in gpus.ssh("alice", pair).split() if each != "nvidiactl"]
    assert sorted(seen) == ["nvidia0", "nvidia1"]
    both = gpus.ssh("alice", f"srun --gres=gpu:2 sh -c '{LIST}'").split()
    assert sorted(both) == ["nvidia0", "nvidia1", "nvidiactl"]


def test_a_step_outside_of_slurm_sees_what_its_job_has(gpus: Lab) -> None:
    """A batch script and its steps have the same devices."""
    gpus.ssh(
        "alice",
        f"rm -f of-gpu; sbatch --quiet --wait --gres=gpu:1 -o of-gpu --wrap \"{LIST}; srun sh -c '{LIST}'\"",
    )
    script, step = (line.split() for line in gpus.ssh("alice", "cat of-gpu; rm of-gpu").splitlines())
    assert sorted(script) == sorted(step)
    assert len(script) == 2


BURN = "kept = bytearray(b'x' * (200 << 20))\nwhile True: pass"
SCRAPE = "exec 3<>/dev/tcp/gpu-0/6823 && printf 'GET /metrics HTTP/1.1\\r\\n\\r\\n' >&3 && cat <&3"


def used(made: Lab) -> dict[str, dict[str, float]]:
    """What the worker says that its jobs use: by metric, by job; a GPU's name stands behind the job's number."""
    found: dict[str, dict[str, float]] = {}
    for line in made.ssh("alice", f'bash -c "{SCRAPE}"').splitlines():
        if match := re.match(r'(slurm_job_\w+){slurm_cluster="gpus",node="gpu-0",job_id="(.+)"} (\S+)$', line):
            found.setdefault(match[1], {})[match[2].replace('",device="', " ")] = float(match[3])
    return found


def test_a_worker_tells_what_its_jobs_use_and_which_gpu_is_whose(gpus: Lab) -> None:
    """CPU, memory and the GPU by the job's number while it runs, CPU of what it ran before too, and nothing of it afterwards."""
    gpus.ssh("alice", f'cat > burn.py <<"END"\n{BURN}\nEND')
    job = gpus.ssh("alice", "sbatch --parsable --gres=gpu:1 -o /dev/null --wrap 'srun python3 burn.py'").strip()
    cpu, memory, gpu = "slurm_job_cpu_seconds_total", "slurm_job_memory_bytes", "slurm_job_gpu"
    gpus.until(f"200 MiB under {job}", lambda: used(gpus).get(memory, {}).get(job, 0) > 200 << 20, 60)
    before = used(gpus)
    (device,) = [each.split()[1] for each in before[gpu] if each.split()[0] == job]
    seen = gpus.ssh("alice", f'srun --overlap --jobid={job} sh -c "{LIST}"').split()
    assert sorted(seen) == sorted([device, "nvidiactl"])
    gpus.timed("2 s of CPU under the job's number", lambda: used(gpus)[cpu].get(job, 0) > before[cpu][job] + 2, 60)
    gpus.ssh("alice", f"scancel {job}; rm burn.py")
    gpus.until(f"nothing of job {job}", lambda: job not in used(gpus).get(cpu, {}), 60)
    assert not any(each.split()[0] == job for each in used(gpus).get(gpu, {}))
