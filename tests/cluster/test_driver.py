"""GPU drivers: two kinds of nodes with two (made-up) drivers share one jail, and each job finds its own node's."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.demo import STATE
from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster

SIZE = {"requests": {"cpu": "50m", "memory": "1Gi"}}
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
int main(void) { void *it = dlopen("libcuda.so.1", RTLD_NOW); return it ? puts(*(const char **)dlsym(it, "driver")) < 0 : !!puts("none"); }
"""


def library(folder: Path, version: str) -> None:
    """A driver: one library that says its version, and one tool that does."""
    (folder / "lib").mkdir(parents=True, exist_ok=True)
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "it.c").write_text(f'const char *driver = "driver {version}";\n')
    made = folder / "lib" / f"libcuda.so.{version}"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", made, folder / "it.c"], check=True)
    tool = folder / "bin/nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho tool {version}\n")
    tool.chmod(0o755)


def specification(folder: Path, version: str) -> None:
    """A CDI specification of that driver, as nvidia-ctk would write it for a Node that has it in /usr."""
    names = (f"lib/libcuda.so.{version}", "bin/nvidia-smi")
    mounts = [
        {"hostPath": f"{folder}/{name}", "containerPath": f"/usr/{name}", "options": ["ro", "bind"]} for name in names
    ]
    device = {"name": "all", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}}
    said = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [device], "containerEdits": {"mounts": mounts}}
    (folder / "cdi").mkdir(exist_ok=True)
    (folder / "cdi/nvidia.json").write_text(json.dumps(said))


@pytest.fixture(scope="module")
def drivers(lab: Lab, alice: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """NodeSets `gpu-a`, whose driver is a folder of the Node, and `gpu-b`, whose driver a CDI specification lists; a program that asks for one."""
    if not lab.target.is_local:
        pytest.skip("the folders of the Nodes are this machine's")
    root = STATE / "drivers"
    library(root / "a", "550.54.14")
    library(root / "b", "560.35.3")
    specification(root / "b", "560.35.3")
    sources = {
        "gpu-a": {"hostPath": {"path": f"{root}/a"}},
        "gpu-b": {"cdi": {"spec": f"{root}/b/cdi", "root": f"{root}/b"}},
    }
    for name, source in sources.items():
        spec = {"clusterRef": {"name": lab.cluster}, "replicas": 1, "resources": SIZE, "gpu": {"driver": source}}
        assert lab.apply("NodeSet", name, spec).returncode == 0
    build = tmp_path_factory.mktemp("program")
    (build / "it.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-static-libgcc", "-o", build / "it", build / "it.c"], check=True)
    lab.ssh(alice, "cat > ask && chmod 755 ask", stdin=(build / "it").read_bytes())
    lab.wait_available(120)
    yield
    lab.kubectl("delete", "nodeset", *sources)
    lab.until("the nodes are gone", lambda: not any("gpu-" in name for name in lab.pods("worker")), 60)
    lab.wait_available()


def test_each_job_finds_its_own_nodes_driver_without_a_variable(lab: Lab, drivers: None, alice: str) -> None:
    """One file name, one shared root: a library of another version on each node, and none where no driver is."""
    said = [lab.ssh(alice, f"srun -w {node} env -i $HOME/ask || true") for node in ("gpu-a-0", "gpu-b-0", "worker-0")]
    assert said == ["driver 550.54.14\n", "driver 560.35.3\n", "none\n"]
    at_once = lab.ssh(alice, "srun -w gpu-a-0,gpu-b-0 sh -c './ask; nvidia-smi'")
    assert sorted(at_once.splitlines()) == ["driver 550.54.14", "driver 560.35.3", "tool 550.54.14", "tool 560.35.3"]


def test_the_nodes_own_driver_wins_over_one_in_the_jail(lab: Lab, drivers: None, alice: str) -> None:
    """A folder that a user has in LD_LIBRARY_PATH stays, behind the node's; a batch script's steps have it once."""
    lab.ssh(alice, "mkdir -p mine && cp /opt/soperator/lib/libc.so.6 mine/libcuda.so.1")
    script = "LD_LIBRARY_PATH=$HOME/mine sbatch --wait -w gpu-b-0 -o paths --wrap 'srun sh -c \"echo \\$LD_LIBRARY_PATH; ./ask\"'; cat paths"
    said = lab.ssh(alice, script).splitlines()[1:]
    assert said == ["/opt/soperator/driver/lib:/home/alice/mine", "driver 560.35.3"]


def test_ldconfig_of_any_node_breaks_none(lab: Lab, drivers: None, alice: str) -> None:
    """What apt-get does after each library: as root on a node with a driver, then on one without; a running job keeps its driver."""
    job = "sh -c './ask; until [ -e go ]; do sleep 0.1; done; env -i ./ask'"
    lab.ssh(alice, f"rm -f go kept; nohup srun -w gpu-a-0 {job} > kept 2>&1 < /dev/null &")
    lab.until("the job runs", lambda: lab.ssh(alice, "cat kept || true") == "driver 550.54.14\n", 20)
    for node in ("gpu-b-0", "worker-0"):
        lab.ssh("root", f"srun -w {node} ldconfig")
        said = lab.ssh(alice, "srun -w gpu-b-0 ./ask; srun -w worker-0 ./ask || true")
        assert said == "driver 560.35.3\nnone\n"
    lab.ssh(alice, "touch go")
    lab.until("the job has asked again", lambda: lab.ssh(alice, "cat kept") == "driver 550.54.14\n" * 2, 20)
    lab.ssh("root", "srun -w gpu-a-0 ldconfig")
    assert lab.ssh(alice, "srun -w gpu-b-0 ./ask; srun -w gpu-a-0 ./ask") == "driver 560.35.3\ndriver 550.54.14\n"


def test_nobody_writes_to_a_driver(lab: Lab, drivers: None) -> None:
    """Root of a job neither changes the files nor adds one, and the Node's folder is as it was."""
    script = "echo x > /opt/soperator/driver/bin/nvidia-smi; touch /opt/soperator/driver/lib/x; rm /opt/soperator/driver/lib/libcuda.so.1"
    said = lab.ssh("root", f"srun -w gpu-a-0 sh -c '{script}' 2>&1 || true")
    assert said.count("Read-only file system") == 3
    assert (STATE / "drivers/a/bin/nvidia-smi").read_text() == "#!/bin/sh\necho tool 550.54.14\n"


def test_a_folder_without_a_driver_is_told(lab: Lab, drivers: None) -> None:
    """The worker waits, and the NodeSet's condition says what its Node lacks."""
    empty = STATE / "drivers/none"
    empty.mkdir(exist_ok=True)
    spec = {
        "clusterRef": {"name": lab.cluster},
        "replicas": 1,
        "resources": SIZE,
        "gpu": {"driver": {"hostPath": {"path": str(empty)}}},
    }
    assert lab.apply("NodeSet", "gpu-c", spec).returncode == 0
    try:
        words = f"{empty} of the Node has no GPU driver"
        lab.timed(
            "a Node without its driver → the sentence",
            lambda: words in lab.says("nodeset", "gpu-c"),
            60,
        )
    finally:
        lab.kubectl("delete", "nodeset", "gpu-c")
        lab.until("gpu-c is gone", lambda: "demo-gpu-c-0" not in lab.pods(), 60)
