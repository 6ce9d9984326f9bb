"""The command line says what a person needs, in lines, and never a traceback."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from soperator.cli.__main__ import app
from soperator.cli.why import notes, reasons
from soperator.crdgen import generate
from soperator.kube.views import Custom, ObjectMeta

ROOT = Path(__file__).parents[3]
RUN = CliRunner()

GOOD = """
apiVersion: slurm.soperator.io/v1alpha1
kind: SlurmCluster
metadata: {name: demo}
---
apiVersion: slurm.soperator.io/v1alpha1
kind: NodeSet
metadata: {name: worker}
spec: {clusterRef: { name: demo }, replicas: 2, resources: {limits: {cpu: 2, memory: 1Gi}}}
"""


def lint(tmp_path: Path, text: str, *words: str) -> tuple[int, list[str]]:
    """The exit code of lint on one file, and what it says without the file's name."""
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    done = RUN.invoke(app, ["lint", str(file), *words])
    lines = [line.removeprefix(f"{file}: ") for line in done.output.splitlines()]
    return done.exit_code, [line for line in lines if not line.startswith("note: ")]


class TestLint:
    """`soperator lint`."""

    def test_passes_the_example(self) -> None:
        """What the documentation shows has no problems."""
        done = RUN.invoke(app, ["lint", str(ROOT / "examples/cluster.yaml")])
        assert (done.exit_code, done.stdout) == (0, "2 objects, no problems\n")

    def test_warns_of_what_takes_a_wall_down(self, tmp_path: Path) -> None:
        """It is allowed, so it is no problem."""
        privileged = "podTemplate: {spec: {containers: [{name: x, securityContext: {privileged: true}}]}}"
        code, lines = lint(tmp_path, GOOD.replace("replicas: 2", f"replicas: 2, {privileged}"))
        field = "spec.podTemplate.spec.containers[0].securityContext.privileged"
        assert code == 0
        assert lines == [
            f"warning: NodeSet worker: {field}: True: the container has every right on the Node: remove it",
            "2 objects, no problems",
        ]

    def test_notes_a_cluster_that_nobody_can_log_in_to(self, tmp_path: Path) -> None:
        """A new jail has no users, so a cluster with neither a key of root nor a directory is rarely meant; it is no problem."""
        file = tmp_path / "cluster.yaml"
        file.write_text(GOOD)
        done = RUN.invoke(app, ["lint", str(file)])
        note = "note: SlurmCluster demo: spec.login.rootAuthorizedKeys: empty: root cannot log in"
        assert (done.exit_code, f"{file}: {note}" in done.stderr) == (0, True)
        for spec in ("login: {rootAuthorizedKeys: [ssh-ed25519 AAAA x]}", "sssd: {configSecretName: directory}"):
            file.write_text(GOOD.replace("{name: demo}", f"{{name: demo}}\nspec: {{{spec}}}", 1))
            assert "note: " not in RUN.invoke(app, ["lint", str(file)]).stderr

    def test_reads_standard_input(self) -> None:
        """A dash stands for it."""
        assert RUN.invoke(app, ["lint", "-"], input=GOOD).exit_code == 0

    def test_says_every_problem_at_once(self, tmp_path: Path) -> None:
        """Shape, rules, references and extra lines, in both objects."""
        text = GOOD.replace("{name: demo}", "{name: demo}\nspec: {login: {replicsa: 1}, auth: {type: x}}")
        code, lines = lint(tmp_path, text.replace("replicas: 2", "weight: 0"))
        assert code == 1
        assert lines == [
            "SlurmCluster demo: spec.auth.type: x: choose one of 'slurm' or 'munge'",
            "SlurmCluster demo: spec.login.replicsa: 1: unknown field: did you mean replicas?",
            "NodeSet worker: spec.weight: 0: it should be greater than or equal to 1",
            "3 problems",
        ]

    def test_says_what_only_both_objects_together_show(self, tmp_path: Path) -> None:
        """A partition over a NodeSet that is not there."""
        text = GOOD.replace(
            "{name: demo}",
            "{name: demo}\nspec: {partitions: [{name: a, nodeSets: [gpu]}], config: {extraLines: {slurm: NodeName=a}}}",
        )
        code, lines = lint(tmp_path, text)
        assert code == 1
        assert "spec.partitions[0].nodeSets[0]: gpu: no NodeSet in the namespace has this name" in lines[0]
        assert lines[1].startswith(
            "SlurmCluster demo: spec.config.extraLines.slurm, line 1: NodeName=a: nodes register by themselves"
        )

    def test_blames_no_reference_to_an_object_that_could_not_be_read(self, tmp_path: Path) -> None:
        """One fault is said once."""
        _, lines = lint(tmp_path, GOOD.replace("{name: demo}", "{name: demo}\nspec: {logn: {}}"))
        assert len(lines) == 2

    def test_takes_a_part_of_the_objects_when_told(self, tmp_path: Path) -> None:
        """A NodeSet alone is fine with --partial only."""
        alone = GOOD.partition("---")[2]
        assert lint(tmp_path, alone)[0] == 1
        assert lint(tmp_path, alone, "--partial")[0] == 0

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("a: [", "line 1: "),
            ("a: 1\na: 2", "the key 'a' stands twice"),
            ("- a", "not a Kubernetes object"),
            ("apiVersion: slurm.soperator.io/v1\nkind: NodeSet", "unknown kind"),
            (
                "apiVersion: slurm.soperator.io/v1alpha1\nkind: NodeSet\nspec: {clusterRef: {name: a}}",
                "metadata.name: missing",
            ),
            (
                "apiVersion: slurm.soperator.io/v1alpha1\nkind: SlurmCluster\nmetadata: {name: a}\nspce: {}",
                "unknown field",
            ),
            ("apiVersion: slurm.soperator.io/v1alpha1\nkind: SlurmCluster\nmetadata: {name: a}\nspec: []", "spec: []"),
        ],
    )
    def test_says_in_one_line_what_cannot_be_read(self, tmp_path: Path, text: str, words: str) -> None:
        """Broken YAML and foreign shapes are problems like others."""
        code, lines = lint(tmp_path, text)
        assert code == 1
        assert words in lines[0]

    def test_says_which_file_is_missing(self) -> None:
        """The message has the path and the reason."""
        done = RUN.invoke(app, ["lint", "/nonexistent.yaml"])
        assert "/nonexistent.yaml: it cannot be read: No such file or directory" in done.output

    def test_skips_other_kinds_and_reads_lists(self, tmp_path: Path) -> None:
        """A file may hold a namespace's other objects; a List holds ours."""
        items = [item for item in yaml.safe_load_all(GOOD) if item]
        text = yaml.safe_dump_all(
            [{"apiVersion": "v1", "kind": "List", "items": [*items, {"apiVersion": "v1", "kind": "Secret"}]}]
        )
        assert lint(tmp_path, text) == (0, ["2 objects, no problems"])

    def test_namespaces_are_worlds_apart(self, tmp_path: Path) -> None:
        """A NodeSet refers within its own namespace."""
        code, lines = lint(tmp_path, GOOD.replace("{name: worker}", "{name: worker, namespace: other}"))
        assert code == 1
        assert "no SlurmCluster in the namespace has this name" in lines[0]


def test_crds_prints_what_kubectl_takes() -> None:
    """A document for each kind, as generated."""
    done = RUN.invoke(app, ["crds"])
    assert [each["kind"] for each in yaml.safe_load_all(done.output)] == ["CustomResourceDefinition"] * len(
        generate.files()
    )


def test_crds_writes_a_file_per_kind(tmp_path: Path) -> None:
    """The folder is made."""
    RUN.invoke(app, ["crds", "--write", str(tmp_path / "x")])
    assert {path.name: path.read_text() for path in (tmp_path / "x").iterdir()} == dict(generate.files())


def test_render_prints_every_object_without_owners() -> None:
    """Offline there is no uid to own by."""
    done = RUN.invoke(app, ["render", str(ROOT / "examples/cluster.yaml")])
    assert done.exit_code == 0, done.output
    objects = list(yaml.safe_load_all(done.output))
    pods = [each["metadata"]["name"] for each in objects if each["kind"] == "Pod"]
    assert pods == ["demo-worker-0", "demo-worker-1"]
    assert not [each for each in objects if "ownerReferences" in each["metadata"]]
    assert not [each for each in objects if each["kind"] == "Secret"]


def test_render_says_what_cannot_be_read() -> None:
    """Nothing is rendered of a broken file."""
    done = RUN.invoke(app, ["render", "-"], input=GOOD.replace("replicas: 2", "replica: 2"))
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert "did you mean replicas?" in done.output


def test_explain_shows_a_field_and_its_inner_fields() -> None:
    """As `kubectl explain`, with rules."""
    done = RUN.invoke(app, ["explain", "nodeset.gpu"])
    assert done.exit_code == 0
    assert "vendor" in done.output
    assert "need each other" in done.output


@pytest.mark.parametrize("name", ["cluster", "slurmcluster", "SlurmClusters", "slc"])
def test_explain_knows_the_names_that_kubectl_knows(name: str) -> None:
    """A kind is found by our name, its own, its plural and its short name."""
    assert RUN.invoke(app, ["explain", f"{name}.login"]).stdout.startswith("cluster.login: ")


def test_explain_of_a_wrong_field_names_the_right_ones() -> None:
    """Exit code 1 and one line."""
    done = RUN.invoke(app, ["explain", "nodeset.gpus"])
    assert (done.exit_code, done.output.count("\n")) == (1, 1)


class TestExplainJail:
    """`soperator explain jail`, from files."""

    def test_shows_every_mount_with_its_reason(self, tmp_path: Path) -> None:
        """One table for login and one for each NodeSet, in the order in which the mounts are made."""
        file = tmp_path / "cluster.yaml"
        file.write_text(
            GOOD.replace("{name: demo}", "{name: demo}\nspec: {jail: {submounts: [{path: /home, claimName: homes}]}}")
        )
        done = RUN.invoke(app, ["explain", "jail", "demo", "-f", str(file)])
        assert done.exit_code == 0, done.output
        login, worker = done.output.split("\n\n")
        assert login.startswith("login nodes of SlurmCluster demo\n")
        assert worker.startswith("nodes of NodeSet worker of SlurmCluster demo\n")
        for each in (login, worker):
            first, *_, last = each.strip().splitlines()[2:]
            assert first.split()[:4] == ["1", "/", "root", "/mnt/jail/root"]
            assert last.endswith("submount of SlurmCluster demo: claim homes")

    def test_shows_one_nodeset(self) -> None:
        """Its name follows that of the cluster, and login is left out."""
        done = RUN.invoke(app, ["explain", "jail", "demo", "worker", "-f", "-"], input=GOOD)
        assert (done.exit_code, "login" in done.output) == (0, False)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["other"], "SlurmCluster other: it does not exist, or cannot be read (found: demo)\n"),
            (["demo", "gpu"], "NodeSet gpu: it does not exist, or cannot be read (found: worker)\n"),
            (
                [],
                "jail: give the name of a SlurmCluster, and optionally of one NodeSet: soperator explain jail demo worker\n",
            ),
        ],
    )
    def test_says_what_is_not_there(self, words: list[str], said: str) -> None:
        """One line, with what there is instead."""
        done = RUN.invoke(app, ["explain", "jail", *words, "-f", "-"], input=GOOD)
        assert (done.exit_code, done.output) == (1, said)

    def test_says_what_cannot_be_read(self) -> None:
        """The faults of a file, as lint says them."""
        done = RUN.invoke(app, ["explain", "jail", "demo", "-f", "-"], input=GOOD.replace("replicas: 2", "replica: 2"))
        assert (done.exit_code, "did you mean replicas?" in done.output) == (1, True)


class TestWhy:
    """`soperator why`."""

    def test_says_each_condition_that_is_not_true(self) -> None:
        """One sentence each, with the object."""
        conditions = [
            {"type": "Available", "status": "False", "message": "the jail is being filled"},
            {"type": "JailReady", "status": "True", "message": "filled"},
        ]
        said = Custom(
            metadata=ObjectMeta(name="demo", generation=1), status={"conditions": conditions, "observedGeneration": 1}
        )
        assert reasons("SlurmCluster", said) == ["SlurmCluster demo: Available is False: the jail is being filled"]

    @pytest.mark.parametrize(("reason", "is_wrong"), [("Sampled", False), ("Off", False), ("SizeUnknown", True)])
    def test_what_the_spec_has_so_is_a_note(self, reason: str, is_wrong: bool) -> None:
        """A cluster with the default limits of jobs is well, and says what does not hold them."""
        told = {"type": "LimitsEnforced", "status": "False", "reason": reason, "message": "memory is looked at"}
        status = {"conditions": [{"type": "Available", "status": "True"}, told], "observedGeneration": 1}
        said = Custom(metadata=ObjectMeta(name="demo", generation=1), status=status)
        sentence = "SlurmCluster demo: LimitsEnforced is False: memory is looked at"
        assert reasons("SlurmCluster", said) == ([sentence] if is_wrong else [])
        assert notes("SlurmCluster", said) == ([] if is_wrong else [f"Note: {sentence}"])

    def test_says_that_nobody_looked(self) -> None:
        """No status means no operator."""
        assert "has not observed it yet" in reasons("SlurmCluster", Custom(metadata=ObjectMeta(name="demo")))[0]

    def test_says_that_the_last_change_is_not_seen(self) -> None:
        """The generations differ."""
        conditions = [{"type": "Available", "status": "True"}]
        said = Custom(
            metadata=ObjectMeta(name="demo", generation=2), status={"conditions": conditions, "observedGeneration": 1}
        )
        assert reasons("NodeSet", said) == ["NodeSet demo: the operator has not observed the last change yet"]


def cpu_of_children() -> float:
    """The seconds of a core that this process's children have used, which another test beside this one doesn't change."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    """`soperator --help` imports neither models nor HTTP; the best of five runs takes under 300 ms of a core."""
    program = (
        "import sys\nfrom soperator.cli.__main__ import app\n"
        "heavy = {'pydantic', 'lightkube', 'httpx2', 'yaml', 'soperator.api.base'} & sys.modules.keys()\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stderr == ""
    times = []
    for _ in range(5):
        began = cpu_of_children()
        subprocess.run([sys.executable, "-m", "soperator.cli", "--help"], capture_output=True, check=True)
        times.append(cpu_of_children() - began)
    assert min(times) < 0.3
