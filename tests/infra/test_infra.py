"""The OpenTofu module in infra/, with a real OpenTofu: what `make test-infra` runs.

The releases are made on a kube-apiserver of the test's own, by the Helm provider 1.3.2 (docs/decisions/0180). No operator runs there:
the test plays it where it keeps a cluster that still has jobs, by the same finalizer.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from local import infra
from soperator.cli.__main__ import app
from tests.runtime.server import ADMIN, ControlPlane, find_binaries

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "infra"
EXAMPLES = sorted(path for path in (MODULE / "examples").iterdir())
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHB1dCB5b3VyIG93biBwdWJsaWMga2V5IGhlcmUsIG9r ann@laptop"
CLOUD = re.compile(r"\b(?:aws|google|azurerm|oci|nebius)_\w+\.\w+(?:\.\w+|\[\d+\])*")
VALUES = 'output "values" {\n  value = module.slurm.values\n}\n'
FINALIZER = "slurm.soperator.io/jobs-of-a-test"

pytestmark = [
    pytest.mark.skipif(not os.environ.get("SOPERATOR_INFRA"), reason="`make test-infra` runs it"),
    pytest.mark.timeout(900),
]
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)


@dataclass(frozen=True)
class Tofu:
    """OpenTofu, run with the provider that was built here and with no registry to ask."""

    program: Path
    configuration: Path

    def run(self, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it in a folder; its code and what it printed are the caller's to judge."""
        env = os.environ | {"TF_CLI_CONFIG_FILE": str(self.configuration), "TF_IN_AUTOMATION": "yes"}
        return subprocess.run(
            [self.program, *words], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=600
        )

    def must(self, folder: Path, *words: str) -> str:
        """Run it, and fail with its output if it fails."""
        done = self.run(folder, *words)
        assert done.returncode == 0, f"tofu {' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout


@dataclass(frozen=True)
class Kubernetes:
    """An API server, its kubeconfig, and kubectl."""

    kubeconfig: Path
    programs: Path

    def kubectl(self, *words: str) -> str:
        """Return what kubectl printed; it must succeed."""
        command = [self.programs / "kubectl", f"--kubeconfig={self.kubeconfig}", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"kubectl {' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def names(self, *words: str) -> set[str]:
        """Return the names that `kubectl get` lists."""
        return set(self.kubectl("get", *words, "-o", "name").split())


@pytest.fixture(scope="session")
def tofu(tmp_path_factory: pytest.TempPathFactory) -> Tofu:
    """OpenTofu with the provider, as `make test-infra` built them."""
    built = infra.find()
    assert built, "OpenTofu is not built: `python3 -m local.infra`"
    program, helm = built
    configuration = tmp_path_factory.mktemp("tofu") / "tofurc"
    configuration.write_text(infra.cli_configuration(helm))
    return Tofu(program, configuration)


@pytest.fixture
def kubernetes(tmp_path: Path) -> Iterator[Kubernetes]:
    """An API server of the test's own: claims and kinds that another test deleted would go away later than it ends."""
    programs = find_binaries()
    assert programs, "kube-apiserver is not built: `make built`"
    folder = tmp_path / "kubernetes"
    folder.mkdir()
    plane = ControlPlane(programs, folder)
    try:
        plane.start()
        kubeconfig = folder / "admin.kubeconfig"
        named = {
            "clusters": [{"name": "c", "cluster": {"server": plane.url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": ADMIN}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        kubeconfig.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "x"} | named))
        yield Kubernetes(kubeconfig, programs)
    finally:
        plane.stop()


@pytest.fixture
def root(tmp_path: Path, kubernetes: Kubernetes) -> Path:
    """A folder with a copy of the module, and a root that calls it in the syntax of the provider 1.3.2."""
    shutil.copytree(MODULE, tmp_path / "infra")
    folder = tmp_path / "infra" / "examples" / "test"
    folder.mkdir()
    (folder / "provider.tf").write_text(
        f'provider "helm" {{\n  kubernetes {{\n    config_path = "{kubernetes.kubeconfig}"\n  }}\n}}\n'
    )
    return folder


def write_root(folder: Path, kubernetes: Kubernetes, replicas: int, timeout: str = "5s") -> None:
    """Write the call of the module: a cluster with two NodeSets and volumes in a folder of the Nodes."""
    (folder / "main.tf").write_text(f"""
module "slurm" {{
  source       = "../.."
  name         = "demo"
  charts       = "{ROOT}/charts"
  images       = {{ prefix = "registry.example/soperator" }}
  operator     = {{ wait = false }}
  storage      = {{ host_path = "/mnt/shared", state_size = "4Gi" }}
  login        = {{ service_type = "NodePort", root_authorized_keys = ["{KEY}"] }}
  cluster_spec = {{ login = {{ tmpSize = "10Gi" }} }}
  partitions   = [{{ name = "main", default = true, node_sets = ["cpu"], options = {{ MaxTime = "1-00:00:00" }} }}, {{ name = "all" }}]
  node_sets = {{
    cpu = {{ replicas = {replicas}, limits = {{ cpu = "8", memory = "32Gi" }}, drain = {{ timeout = "12h", on_timeout = "Requeue" }} }}
    gpu = {{
      power_saving = {{ max_nodes = 4 }}
      limits       = {{ cpu = "120", memory = "1500Gi" }}
      gpu          = {{ vendor = "nvidia", count = 8, type = "h100" }}
      rdma         = {{ resources = {{ "rdma/hca" = "1" }} }}
      tolerations  = [{{ key = "nvidia.com/gpu" }}]
    }}
  }}
  destroy_wait = {{ kubeconfig = "{kubernetes.kubeconfig}", kubectl = "{kubernetes.programs}/kubectl", timeout = "{timeout}" }}
}}

output "values" {{
  value = module.slurm.values
}}

output "login_command" {{
  value = module.slurm.login_command
}}
""")


def test_every_file_is_formatted(tofu: Tofu):
    """`tofu fmt` would change nothing, which also says that each file parses."""
    assert tofu.run(MODULE, "fmt", "-check", "-recursive", "-diff").stdout == ""


def test_the_module_is_valid_for_the_schema_of_the_provider(tofu: Tofu, tmp_path: Path):
    """Arguments and types fit the provider that is to be had."""
    shutil.copytree(MODULE, tmp_path / "infra")
    assert "Success" in tofu.must(tmp_path / "infra", "validate")


def test_the_modules_own_tests_pass(tofu: Tofu, tmp_path: Path):
    """`tofu test` runs every run of infra/tests, against a provider that does nothing."""
    shutil.copytree(MODULE, tmp_path / "infra")
    runs = sum(path.read_text().count('\nrun "') for path in (MODULE / "tests").iterdir())
    assert f"Success! {runs} passed, 0 failed." in tofu.must(tmp_path / "infra", "test", "-no-color")


def test_each_condition_of_a_variable_has_a_value_that_it_refuses():
    """The runs of refusals.tftest.hcl are those of variables.tf, in its order."""
    conditions = [
        name
        for name, body in re.findall(
            r'^variable "(\w+)" \{\n(.*?)^\}', (MODULE / "variables.tf").read_text(), re.M | re.S
        )
        for _ in re.findall(r"^  validation \{", body, re.M)
    ]
    refused = re.findall(r"expect_failures = \[var\.(\w+)\]", (MODULE / "tests/refusals.tftest.hcl").read_text())
    assert refused == conditions
    assert len(conditions) > 30


def test_an_apply_makes_the_objects_and_a_second_plan_is_empty(tofu: Tofu, kubernetes: Kubernetes, root: Path):
    """What the variables say is in the objects, a change changes them, and `soperator lint` finds no fault."""
    write_root(root, kubernetes, replicas=2)
    tofu.must(root, "get")
    tofu.must(root, "apply", "-auto-approve", "-no-color")
    try:
        assert kubernetes.names("-n", "slurm", "slurmcluster,nodeset") == {
            "slurmcluster.slurm.soperator.io/demo",
            "nodeset.slurm.soperator.io/cpu",
            "nodeset.slurm.soperator.io/gpu",
        }
        assert kubernetes.names("-n", "slurm", "pvc") == {
            "persistentvolumeclaim/demo-jail",
            "persistentvolumeclaim/demo-state",
        }
        spec = json.loads(kubernetes.kubectl("-n", "slurm", "get", "slurmcluster/demo", "-o", "json"))["spec"]
        assert spec["login"]["tmpSize"] == "10Gi"
        assert spec["login"]["rootAuthorizedKeys"] == [KEY]
        assert spec["jail"]["claim"]["name"] == "demo-jail"
        assert tofu.run(root, "plan", "-detailed-exitcode", "-no-color").returncode == 0
        write_root(root, kubernetes, replicas=3)
        assert tofu.run(root, "plan", "-detailed-exitcode", "-no-color").returncode == 2
        tofu.must(root, "apply", "-auto-approve", "-no-color")
        assert kubernetes.kubectl("-n", "slurm", "get", "nodeset/cpu", "-o", "jsonpath={.spec.replicas}") == "3"
        lint_values(json.loads(tofu.must(root, "output", "-json", "values")), kubernetes, root)
    finally:
        tofu.must(root, "destroy", "-auto-approve", "-no-color")


def lint_values(values: list[str], kubernetes: Kubernetes, folder: Path) -> None:
    """Ask `soperator lint` about the objects that the chart makes of these values."""
    files = [folder / f"values-{number}.yaml" for number in range(len(values))]
    for file, text in zip(files, values, strict=True):
        file.write_text(text)
    words = [word for file in files for word in ("-f", str(file))]
    command = [str(kubernetes.programs / "helm"), "template", "demo", str(ROOT / "charts/slurm-cluster"), "-n", "slurm"]
    rendered = subprocess.run([*command, *words], capture_output=True, text=True, check=True).stdout
    linted = CliRunner().invoke(app, ["lint", "-"], input=rendered)
    assert linted.exit_code == 0, linted.output


def test_a_destroy_waits_for_the_jobs_and_keeps_the_operator_until_then(tofu: Tofu, kubernetes: Kubernetes, root: Path):
    """A finalizer is how the operator keeps a cluster that has jobs; the first destroy meets it, the second does not."""
    write_root(root, kubernetes, replicas=2)
    tofu.must(root, "get")
    tofu.must(root, "apply", "-auto-approve", "-no-color")
    kept = ("-n", "slurm", "patch", "slurmcluster/demo", "nodeset/cpu", "--type=merge", "-p")
    kubernetes.kubectl(*kept, json.dumps({"metadata": {"finalizers": [FINALIZER]}}))
    waited = tofu.run(root, "destroy", "-auto-approve", "-no-color")
    assert waited.returncode == 1, waited.stdout
    assert "Jobs still run" in waited.stdout + waited.stderr
    assert kubernetes.names("-n", "slurm", "slurmcluster") == {"slurmcluster.slurm.soperator.io/demo"}
    assert kubernetes.names("-n", "soperator-system", "deployment") == {"deployment.apps/soperator"}
    assert "persistentvolumeclaim/demo-jail" in kubernetes.names("-n", "slurm", "pvc")
    again = tofu.run(root, "destroy", "-auto-approve", "-no-color")
    assert again.returncode == 1, "the second destroy waits again, though the release is gone"
    kubernetes.kubectl(*kept, json.dumps({"metadata": {"finalizers": None}}))
    tofu.must(root, "destroy", "-auto-approve", "-no-color")
    assert kubernetes.names("-n", "soperator-system", "deployment") == set()
    kinds = json.loads(kubernetes.kubectl("get", "crd", "-o", "json"))["items"]
    assert [kind["metadata"]["name"] for kind in kinds if "deletionTimestamp" not in kind["metadata"]] == []
    assert {"namespace/slurm", "namespace/soperator-system"} <= kubernetes.names("namespace")


@each_example
def test_the_module_call_of_an_example_makes_objects_that_kubernetes_accepts(
    tofu: Tofu, kubernetes: Kubernetes, root: Path, example: Path
):
    """What comes from a cloud is a word here: those providers are not to be had."""
    text = (example / "slurm.tf").read_text()
    text = re.sub(r"\n  depends_on = .*\n", "\n", text).replace("local.folder", '"/mnt/shared"')
    text = CLOUD.sub('"/word"', text).replace(
        '  name          = "demo"', '  name     = "demo"\n  operator = { wait = false }'
    )
    text = re.sub(r"destroy_wait .*", 'destroy_wait = { kubectl = "true" }', text)
    declared = re.findall(r'^variable "(\w+)"', text, re.M)
    (root / "slurm.tf").write_text(text)
    used = set(re.findall(r"\bvar\.(\w+)", text)) - set(declared)
    (root / "cloud.tf").write_text("".join(f'variable "{name}" {{}}\n' for name in sorted(used)) + VALUES)
    values = {
        "charts": str(ROOT / "charts"),
        "chart_version": "0.1.0",
        "image_prefix": "registry.example/soperator",
        "root_authorized_keys": [KEY],
        "gpu_nodes": 2,
        "storage_account": "word",
    }
    (root / "terraform.tfvars.json").write_text(
        json.dumps({k: v for k, v in values.items() if k in {*declared, *used}})
    )
    tofu.must(root, "get")
    tofu.must(root, "validate", "-no-color")
    try:
        tofu.must(root, "apply", "-auto-approve", "-no-color")
        assert kubernetes.names("-n", "slurm", "nodeset") == {"nodeset.slurm.soperator.io/gpu"}
        lint_values(json.loads(tofu.must(root, "output", "-json", "values")), kubernetes, root)
    finally:
        tofu.must(root, "destroy", "-auto-approve", "-no-color")


@each_example
def test_what_an_example_names_it_also_declares(example: Path):
    """Their providers' schemas are not to be had, so this is less than `tofu validate`: names, not arguments."""
    text = "\n".join(path.read_text() for path in sorted(example.glob("*.tf")))
    code = re.sub(r"#.*", "", text)
    assert set(re.findall(r"\bvar\.(\w+)", code)) == set(re.findall(r'^variable "(\w+)"', code, re.M))
    resources = {f"{kind}.{name}" for kind, name in re.findall(r'^resource "(\w+)" "(\w+)"', code, re.M)}
    data = {f"data.{kind}.{name}" for kind, name in re.findall(r'^data "(\w+)" "(\w+)"', code, re.M)}
    named = set(re.findall(r"(?<![\w.\"])((?:data\.)?(?:aws|google|azurerm|oci|nebius)_\w+\.\w+)", code))
    assert named <= resources | data
    assert len(resources) >= 4


@each_example
def test_an_example_says_that_it_was_never_applied(example: Path):
    """Nobody takes an example for something that worked."""
    assert "**It was never applied.**" in (example / "README.md").read_text()
