"""Containers: `srun --container-image` and its kin, as an ordinary user over SSH, on two nodes.

The image is made on the login node of programs of the jail, and a registry that runs there serves it (spank/tests/oci.py).
"""

from collections.abc import Iterator

import pytest

from local.demo import ROOT
from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster

PROGRAMS = ["sh", "cat", "ls", "id", "sleep", "touch", "env", "grep", "stat", "mkdir", "hostname", "sort", "mount"]
PORT = 5055
RING = """
from mpi4py import MPI
import os, socket
here = MPI.COMM_WORLD
print(here.allreduce(1), socket.gethostname(), os.path.exists("/etc/word"), flush=True)
"""


@pytest.fixture(scope="module")
def image(lab: Lab, alice: str) -> Iterator[str]:
    """An image in a registry on the login node, and as an archive in alice's home; alice's caches are empty."""
    script = (ROOT / "spank/tests/oci.py").read_bytes()
    programs = " ".join(f"/usr/bin/{name}" for name in PROGRAMS)
    lab.ssh(alice, "rm -rf boxes .cache/soperator; mkdir boxes; cat > boxes/oci.py", stdin=script)
    lab.ssh(alice, f"cd boxes && python3 oci.py make layout {programs} && tar -C layout -cf image.tar .")
    serve = f"nohup python3 oci.py serve layout {PORT} > log 2>&1 </dev/null & echo $!"
    pid = lab.ssh(alice, f"cd boxes; {serve}").strip()
    login = lab.ssh(alice, "hostname").strip()
    yield f"{login}:{PORT}#lab/small:one"
    lab.ssh(alice, f"kill {pid}; rm -rf boxes")


def run(lab: Lab, image: str, options: str, command: str) -> str:
    """What srun of a container printed, its errors behind."""
    return lab.ssh(
        "alice",
        f"cd boxes; ENROOT_ALLOW_HTTP=y srun -Q --container-image={image} {options} {command} 2>&1 || echo code $?",
    )


def test_two_nodes_run_one_image_of_a_registry(lab: Lab, image: str) -> None:
    """Both nodes see the image's files, one fetches it, and the user is the user inside."""
    output = run(lab, image, "-N2", "sh -c 'cat /etc/word; id -un; pwd'")
    lines = [line for line in output.splitlines() if not line.startswith("container: fetching")]
    assert sorted(lines) == ["/work/here"] * 2 + ["alice"] * 2 + ["second"] * 2, output
    assert output.count("container: fetching") == 1
    blobs = [line for line in lab.ssh("alice", "cat boxes/log").splitlines() if "GET" in line and "/blobs/" in line]
    assert len(set(blobs)) == 3, blobs
    assert len(blobs) == 4, "the configuration is read once to look up the tag, and once to fetch"


def test_an_archive_and_a_saved_squashfs_run_too(lab: Lab, image: str) -> None:
    """An archive is an image; what a step changes in it and saves is an image for the next one, on the other node as well."""
    run(lab, "./image.tar", "-w worker-0 --container-save=saved.sqsh", "sh -c 'echo third > /etc/word'")
    assert run(lab, "./saved.sqsh", "-w worker-1", "cat /etc/word") == "third\n"
    assert run(lab, image, "", "cat /etc/word") == "second\n"


def test_of_two_nodes_the_first_one_saves(lab: Lab, image: str) -> None:
    """Both nodes of a step name one file; it has the container of the first, and a line says so.

    Which node is first is Slurm's to say: its nodes are dynamic, and it counts them in the order in which they registered.
    """
    output = run(lab, image, "-N2 --container-save=both.sqsh", "sh -c 'echo $SLURM_NODEID >/where'")
    assert "container: each of the 2 nodes has a container of its own; both.sqsh gets that of the first" in output
    assert "code" not in output
    assert run(lab, "./both.sqsh", "-w worker-1", "cat /where") == "0\n"


def test_mounts_and_identity(lab: Lab, image: str) -> None:
    """Mounts are writable or not as said, and root in name leaves files that belong to the user."""
    mounts = "--container-mounts=/home/alice/boxes:/mnt/rw,/home/alice:/mnt/ro:ro"
    output = run(lab, image, mounts, "sh -c 'echo a > /mnt/rw/out; touch /mnt/ro/out || echo refused; ls /home'")
    assert {"refused", "README", "alice"} <= set(output.splitlines()), output
    output = run(
        lab,
        image,
        f"{mounts} --container-remap-root",
        "sh -c 'id -u; touch /mnt/rw/by-root /by-root && stat -c %u /by-root'",
    )
    assert output == "0\n0\n"
    assert lab.ssh("alice", "stat -c %U boxes/out boxes/by-root") == "alice\nalice\n"


def test_working_folder_and_environment(lab: Lab, image: str) -> None:
    """Options go before the image, and the image before the user's environment, unless a variable is named."""
    command = "sh -c 'pwd; echo $SHARED $FROM_IMAGE'"
    both = "--container-workdir=/etc --container-env=SHARED --export=ALL,SHARED=mine"
    assert run(lab, image, both, command) == "/etc\nmine image\n"
    assert run(lab, image, "--export=ALL,SHARED=mine", command) == "/work/here\nimage image\n"


def test_a_named_container_goes_on_within_its_job(lab: Lab, image: str) -> None:
    """In a batch job a second step finds what the first one left, on each of its nodes."""
    script = (
        f"export ENROOT_ALLOW_HTTP=y; srun -Q --container-image={image} --container-name=box sh -c 'hostname > /kept'\n"
        "srun -Q --container-name=box cat /kept | sort\n"
    )
    lab.ssh("alice", "cat > boxes/job", stdin=f"#!/bin/sh\n{script}".encode())
    lab.ssh("alice", "cd boxes && sbatch -Q --wait -N2 -o named.out job")
    assert lab.ssh("alice", "cat boxes/named.out").split() == ["worker-0", "worker-1"]


def test_a_batch_script_in_a_container_starts_steps(lab: Lab, image: str) -> None:
    """The script of `sbatch --container-image` runs inside, and srun from there starts steps in the same image on both nodes."""
    lab.ssh(
        "alice",
        "cat > boxes/job",
        stdin=b"#!/bin/sh\ncat /etc/word\ncd /\nsrun -Q -N2 sh -c 'cat /etc/word; hostname'\n",
    )
    lab.ssh(
        "alice", f"cd boxes && ENROOT_ALLOW_HTTP=y sbatch -Q --wait -N2 -o batch.out --container-image='{image}' job"
    )
    assert sorted(lab.ssh("alice", "cat boxes/batch.out").split()) == ["second"] * 3 + ["worker-0", "worker-1"]


def test_mpi_over_two_nodes(lab: Lab, image: str) -> None:
    """Ranks in containers on two nodes find each other by PMIx; Open MPI comes from the jail's /usr, all else from the image."""
    lab.ssh("alice", "cat > boxes/ring.py", stdin=RING.encode())
    options = "-N2 --mpi=pmix --container-mounts=/usr,/etc/alternatives,/etc/openmpi,./ring.py:/ring.py"
    output = run(lab, image, options, "python3 /ring.py")
    assert sorted(output.splitlines()) == ["2 worker-0 True", "2 worker-1 True"], output


def test_an_image_that_is_not_there_is_said_and_harms_no_node(lab: Lab, image: str) -> None:
    """The sentence names image and reason, the job ends with 1, and both nodes stay idle."""
    missing = image.replace(":one", ":none")
    output = run(lab, missing, "-N1", "echo ran")
    reference = missing.replace("#", "/")
    assert output.startswith(f"container: cannot find the image docker://{reference}: "), output
    assert output.endswith("code 1\n")
    lab.until("both nodes are idle", lambda: lab.ssh("alice", "sinfo -h -N -o %T").split() == ["idle"] * 2, 20)


def test_a_cancelled_job_leaves_nothing_on_its_node(lab: Lab, image: str) -> None:
    """After scancel the node has no process and no mount of the container any more."""
    command = f"sbatch --parsable -w worker-0 -o /dev/null --container-image='{image}' --wrap 'echo > /tmp/runs; sleep 1000 & sleep 1000'"
    job = lab.ssh("alice", f"cd boxes; ENROOT_ALLOW_HTTP=y {command}").strip()
    look = "sh -c 'cat /tmp/runs; cat /proc/[0-9]*/cmdline' 2>/dev/null | tr -d '\\0' || true"
    seen = f"srun -Q --overlap --jobid={job} {look}"
    lab.until("the container runs", lambda: "sleep1000" in lab.ssh("alice", seen), 30)
    lab.ssh("alice", f"scancel {job}")
    lab.until("worker-0 is idle", lambda: lab.ssh("alice", "sinfo -h -n worker-0 -o %T").strip() == "idle", 30)
    look = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/mounts; ls -A /mnt/tmp"
    left = lab.kubectl("exec", f"{lab.cluster}-worker-0", "-c", "slurmd", "--", "sh", "-c", look)
    assert "container-keep" not in left
    assert "sleep\x001000" not in left
    assert ".containers-" not in left
    assert left.split("\n")[-2:] == ["containers", ""]


def test_devices_of_the_job_are_in_its_container(lab: Lab, image: str) -> None:
    """The container's /dev is the job's: the same devices, a terminal where one is asked for."""
    assert run(lab, image, "", "ls /dev") == lab.ssh("alice", "srun -Q ls /dev")
