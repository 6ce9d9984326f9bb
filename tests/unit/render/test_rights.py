"""Rights of containers: each list is the shortest, written once, and agrees with the C code and the documents."""

import re
from pathlib import Path
from typing import Any

import pytest

from soperator.render.parts import capabilities
from tests.golden.cases import CASES, rendered

REPOSITORY = Path(__file__).parents[3]


def contexts(case: str) -> dict[str, dict[str, Any]]:
    """The security context of every container of a case."""
    found = {}
    for file, each in rendered(case).items():
        spec = each.get("spec", {})
        spec = spec.get("template", {}).get("spec", spec)
        for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
            found[f"{file}:{container['name']}"] = container["securityContext"]
    return found


def test_what_root_of_the_jail_keeps_is_what_the_container_was_given() -> None:
    """The list of the C code, which bounds a user's programs, and that of the renderer are one list."""
    kept = set(re.findall(r"\{ CAP_([A-Z_]+), ", (REPOSITORY / "spank" / "caps.c").read_text()))
    assert kept == set(capabilities.JAIL)


@pytest.mark.parametrize("case", CASES)
def test_every_container_names_its_rights(case: str) -> None:
    """None keeps the runtime's default capabilities, a writable image, or is privileged."""
    for name, context in contexts(case).items():
        assert context["capabilities"]["drop"] == ["ALL"], name
        assert context["readOnlyRootFilesystem"] is True, name
        assert "privileged" not in context, name
        assert context["allowPrivilegeEscalation"] is (name.split(":")[1] in ("slurmd", "sshd")), name


@pytest.mark.parametrize("case", CASES)
def test_only_containers_that_make_a_jail_may_mount(case: str) -> None:
    """SYS_ADMIN is in slurmd's container and in login's sshd, and nowhere else."""
    makers = {
        name.split(":")[1]
        for name, context in contexts(case).items()
        if "SYS_ADMIN" in context["capabilities"].get("add", ())
    }
    assert makers == {"slurmd", "sshd"}


def test_the_documents_name_every_right() -> None:
    """docs/explain/isolation.md lists each capability that a container gets, and no other one."""
    page = (REPOSITORY / "docs" / "explain" / "isolation.md").read_text()
    table = page.partition("| capability | reason |\n|---|---|\n")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall("[A-Z_]+", row.split("|")[1])}
    assert named == {*capabilities.JAIL, *capabilities.MAKER, *capabilities.ACCOUNTANT, *capabilities.BINDER}
