"""The documents, held to the repository: what they link to, name and show is there."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from soperator.api.base import API_VERSION, GROUP
from soperator.cli.__main__ import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob(".github/**/*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("infra/**/*.md")]
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
MAKE = re.compile(r"^make ([a-z][a-z0-9-]*)")
VERB = re.compile(r"^(?:\.venv/bin/)?soperator ([a-z]+)")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(text: str, language: str = "") -> Iterator[str]:
    """The fenced blocks of a page, of one language if it is given, without their indentation."""
    for indent, said, body in BLOCK.findall(text):
        if not language or said == language:
            yield "".join(line.removeprefix(indent) for line in body.splitlines(keepends=True))


def commands(text: str) -> Iterator[str]:
    """What a reader would type: the lines of shell blocks and the code spans, cut where a pipe or a list goes on."""
    lines = [line for block in blocks(text, "sh") for line in block.splitlines()]
    for code in [*lines, *SPAN.findall(BLOCK.sub("", text))]:
        yield from (part.strip() for part in re.split(r"\||&&|;", code))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made where the repository is shown."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def objects(text: str) -> Iterator[str]:
    """The YAML of our kinds: as it stands, as the chart `slurm-cluster` makes it of values, or a spec alone."""
    for block in blocks(text, "yaml"):
        documents = [each for each in yaml.safe_load_all(block) if each]
        if any(str(each.get("apiVersion", "")).startswith(GROUP) for each in documents):
            yield block
        elif any("nodeSets" in each for each in documents):
            (values,) = documents
            yield yaml.safe_dump_all(of_chart(values))
        elif any(list(each) == ["spec"] for each in documents):
            (spec,) = documents
            kind = (
                "HealthCheck"
                if "check" in spec["spec"]
                else "NodeSet"
                if "clusterRef" in spec["spec"]
                else "SlurmCluster"
            )
            yield yaml.safe_dump({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "demo"}, **spec})


def of_chart(values: dict[str, dict[str, object]]) -> Iterator[dict[str, object]]:
    """The objects that the values of a cluster stand for."""
    yield {"apiVersion": API_VERSION, "kind": "SlurmCluster", "metadata": {"name": "demo"}, "spec": values["cluster"]}
    for name, spec in values["nodeSets"].items():
        assert isinstance(spec, dict)
        of = {"clusterRef": {"name": "demo"}, **spec}
        yield {"apiVersion": API_VERSION, "kind": "NodeSet", "metadata": {"name": name}, "spec": of}


@each_page
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    """A link inside the repository names a file that is there, and an anchor a heading of it."""
    broken = []
    for link in LINK.findall(BLOCK.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@each_page
def test_every_make_target_exists(page: Path) -> None:
    """A `make` that a reader is told to type has its target in the Makefile."""
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {found[1] for command in commands(page.read_text()) if (found := MAKE.match(command))}
    assert named - targets == set()


@each_page
def test_every_verb_exists(page: Path) -> None:
    """A verb of `soperator` that a reader is told to type is one of the command line's."""
    verbs = {each.name for each in app.registered_commands}
    named = {found[1] for command in commands(page.read_text()) if (found := VERB.match(command))}
    assert named - verbs == set()


@each_page
def test_every_example_of_our_kinds_passes_lint(page: Path, tmp_path: Path) -> None:
    """What a reader copies into a file is accepted, as far as one file can tell."""
    for number, text in enumerate(objects(page.read_text())):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        said = CliRunner().invoke(app, ["lint", "--partial", str(file)])
        assert said.exit_code == 0, said.output


EXPLAINED = re.compile(r"^soperator explain ((?!jail\b)[\w.]+)$")


def test_every_field_that_is_to_be_explained_exists():
    """`soperator explain` of a field that a page names prints it: a renamed field takes its pages along."""
    named = {found[1] for page in PAGES for each in commands(page.read_text()) if (found := EXPLAINED.match(each))}
    assert {"cluster.login", "cluster.jobContainers"} <= named
    assert {each: done.output for each in named if (done := CliRunner().invoke(app, ["explain", each])).exit_code} == {}


def test_the_checks_see_what_they_check() -> None:
    """The pages hold links, make targets, verbs and examples, and the patterns find them."""
    text = "\n".join(page.read_text() for page in PAGES)
    typed = list(commands(text))
    assert len(LINK.findall(text)) > 50
    assert {"demo", "test"} <= {found[1] for each in typed if (found := MAKE.match(each))}
    assert {"why", "lint"} <= {found[1] for each in typed if (found := VERB.match(each))}
    assert sum(len(list(objects(page.read_text()))) for page in PAGES) > 5


HELM = re.compile(r"^helm (install|upgrade) ([\w-]+) (?:charts/|\"oci://\$REGISTRY/charts/)([\w-]+)(.*)$")


def test_an_upgrade_names_the_release_that_the_first_page_installs():
    """A chart has one release name and one namespace in all pages, and an upgrade keeps the values that were given."""
    found = [match.groups() for page in PAGES for each in commands(page.read_text()) if (match := HELM.match(each))]
    installed = {chart: (name, _namespace(rest)) for verb, name, chart, rest in found if verb == "install"}
    upgraded = [(name, chart, rest) for verb, name, chart, rest in found if verb == "upgrade"]
    assert upgraded
    for name, chart, rest in upgraded:
        assert (name, _namespace(rest)) == installed[chart], chart
        assert "reuse-values" in rest, f"helm upgrade {name}"


def _namespace(options: str) -> str:
    """The namespace that the options of a helm command name."""
    return options.partition("-n ")[2].split(" ")[0]


def test_lint_of_a_page_without_a_cluster_is_partial():
    """A file whose cluster is elsewhere is linted with --partial: `soperator lint` alone refuses the reference."""
    text = (ROOT / "docs/howto/accounts.md").read_text()
    assert [each for each in commands(text) if "lint" in each] == ["soperator lint --partial FILE"]


USE = sorted(ROOT.glob("docs/use/[!R]*.md"))


def test_the_index_for_users_has_each_of_their_pages():
    """A page under docs/use that the index does not name is not found by those for whom it is written."""
    assert len(USE) >= 9
    assert {each.name for each in USE} <= set(LINK.findall((ROOT / "docs/use/README.md").read_text()))


@pytest.mark.parametrize("page", USE, ids=lambda page: page.stem)
def test_a_page_for_users_begins_with_its_end_and_needs_no_kubectl(page):
    """The first sentence says what the reader will have, and no command is one that only an administrator can type."""
    text = page.read_text()
    assert text.partition("\n\n")[2].startswith("At the end ")
    first = {each.split(" ")[0] for block in blocks(text, "sh") for each in block.splitlines() if each}
    assert first & {"kubectl", "helm", "make", "sudo", "soperator"} == set()


@pytest.mark.parametrize("page", USE, ids=lambda page: page.stem)
def test_the_batch_scripts_of_users_are_scripts(page):
    """Each script that a user copies is read by bash without an error."""
    for script in (each for each in blocks(page.read_text(), "sh") if each.startswith("#!/bin/bash")):
        done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
