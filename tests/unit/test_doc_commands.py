"""The commands of the pages, held against the programs: verbs and options, make targets, charts and values, kinds, fields, files."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml

from local.images import RECIPES
from tests.unit.doc_commands import ANY_BLOCK, PAGES, ROOT, Typed, faults, shell_blocks, split, typed
from tests.unit.doc_kubectl import unknown_paths

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@each_page
def test_every_command_of_a_page_is_one_that_its_program_takes(page: Path) -> None:
    """A verb, option, target, value, kind or field that is renamed takes the pages along."""
    assert {str(each): found for each in typed(page) if (found := faults(each))} == {}


@each_page
def test_every_shell_block_is_shell(page: Path) -> None:
    """Bash reads each block without an error; `…` and `<NAME>` stand for words of the reader."""
    for block in shell_blocks(page):
        script = block.replace("<where you found this>", "ADDRESS")
        done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), block


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("soperator staus demo", "no verb"),
        ("soperator status demo --wach", "No such option"),
        ("soperator restore demo -n slurm", "Missing option '--password-secret'"),
        ("make dmeo", "no target dmeo"),
        ("make demo NODS=3", "nobody reads NODS"),
        ("python3 -m local.imges build", "no module"),
        ("python3 -m local node sop node-2", "invalid choice"),
        ("helm install soperator charts/soperater", "no chart soperater"),
        ("helm upgrade soperator charts/soperator --set monitoring.dashbord=true", "no value monitoring.dashbord"),
        ("kubectl -n slurm get slurmclutser", "no kind slurmclutser"),
        ("kubectl -n slurm annotate slurmcluster/demo nodeset --all a=b", "kinds beside kind/name"),
        ("kubectl -n slurm annotate nodeset --all slurm.soperator.io/abandon-job=true", "no annotation"),
        (
            """kubectl -n slurm patch slurmcluster demo --type merge -p '{"spec": {"helth": {}}}'""",
            "no field .spec.helth",
        ),
        ("kubectl -n slurm get slurmcluster demo -o jsonpath='{.status.key}'", "no field .status.key"),
        ("kubectl -n slurm wait slurmbackup/nightly --for=condition=Redy", "no condition Redy"),
        ("createuser bob --grups docker -", "--grups"),
        ("kubectl -n slurm apply -f examples/acounts.yaml", "there is no examples/acounts.yaml"),
    ],
)
def test_a_mistake_in_a_command_is_seen(command: str, fault: str) -> None:
    """Each check refuses a command with one wrong word."""
    (words,) = split(command)
    assert any(fault in each for each in faults(Typed("here", tuple(words))) or [])


def test_commands_are_found_in_loops_pipes_and_substitutions() -> None:
    """A command within another is one too; assignments, redirections and comments are none."""
    script = (
        'job=$(sbatch a.sh)\nfor x in 1; do make "$x" > file; done | head -n 1  # make no\nA=b soperator why \\\n  demo'
    )
    assert [" ".join(each) for each in split(script)] == [
        *("sbatch a.sh", "sbatch a.sh", "for x in 1", "make $x", "head -n 1", "soperator why demo"),
    ]


def test_the_checks_know_most_of_what_administrators_type() -> None:
    """Every command of kubectl, helm, make and soperator is checked; others, such as Slurm's, only as shell."""
    found = [each for page in PAGES for each in typed(page)]
    unknown = Counter(each.words[0] for each in found if faults(each) is None)
    assert {"kubectl", "helm", "make", "soperator"} & unknown.keys() == set()
    assert {"kubectl", "helm", "make", "soperator", "createuser"} <= {each.words[0] for each in found}


#: What looks like a field of ours and is none: files, values of the chart `soperator`, fields of a claim and a pod.
NO_FIELDS = {
    "topology.conf",
    "topology.yaml",
    "gpu.sbatch",
    "images.operator",
    "images.digests",
    "images.prefix",
    "images.tag",
    "spec.nodeName",
    "spec.volumeName",
}
#: Decisions and reports are history, and the reference of a kind names the fields of its status without `status`.
TODAY = [each for each in PAGES if not re.search(r"docs/(decisions|reports)/|reference/slurmcluster", str(each))]


@pytest.mark.parametrize("page", TODAY, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_field_that_a_page_names_is_there(page: Path) -> None:
    """A path such as `spec.drain.timeout` or `drain.timeout` leads to a field of one of our kinds."""
    assert set(unknown_paths(ANY_BLOCK.sub("", page.read_text()))) - NO_FIELDS == set()


def test_a_path_that_leads_nowhere_is_seen() -> None:
    """A field of another name is reported; one below what is passed through is not."""
    assert unknown_paths("`drain.timeout`, `drain.timout: 5m`, `spec.podTemplate.spec.hostNetwork`, `when.run`") == [
        "drain.timout",
        "when.run",
    ]


def test_the_page_about_images_names_each_of_them() -> None:
    """Who pushes the images of the page has all that the chart `soperator` takes by default, also those that are built on request."""
    page = (ROOT / "docs/howto/publish-charts.md").read_text()
    images = yaml.safe_load((ROOT / "charts/soperator/values.yaml").read_text())["images"]
    roles = set(images) - {"prefix", "tag", "digests", "pullPolicy", "pullSecrets"}
    assert {"operator", "agents", "backup"} <= roles
    (listed,) = re.findall(r"with the roles (.*?); a cluster that names no images", page, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed)) == roles
    (built,) = re.findall(r"`python3 -m local.images build ([a-z ]+)`, and `list", page)
    assert set(built.split()) == {each.name for each in RECIPES if each.optional} & roles
