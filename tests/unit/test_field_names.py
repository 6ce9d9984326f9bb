"""Messages, pages, charts and scripts name fields of our kinds by text: each of these fields is there, so that none outlives a change of its name."""

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from local.paths import REPOSITORY
from soperator.crdgen.columns import ALL
from tests.unit.model_fields import has

KINDS = [kind.spec for kind in ALL]
#: Fields of Kubernetes' own kinds that pages name.
OF_KUBERNETES = {"containers", "nodeName", "volumeName", "unschedulable", "template", "rules", "defaultBackend"}
_PATH = re.compile(r"(?<![\w.-])spec\.([a-z][A-Za-z0-9]*(?:\.[a-z][A-Za-z0-9]*)*)")


def test_every_field_that_is_named_is_there() -> None:
    """`spec.` and a path, in texts of the program, in pages, charts and scripts of images."""
    lost = {f"{file}: spec.{path}" for file, text in texts() for path in _PATH.findall(text) if not is_known(path)}
    assert lost == set()


def is_known(path: str) -> bool:
    """Whether one of the kinds has it, or it is Kubernetes' own."""
    names = path.split(".")
    return names[0] in OF_KUBERNETES or any(has(kind, names) for kind in KINDS)


def texts() -> Iterator[tuple[Path, str]]:
    """What people read: texts in the program, pages but those of history, charts, scripts of images."""
    for path in sorted(REPOSITORY.glob("src/soperator/**/*.py")):
        with tokenize.open(path) as file:
            words = [each.string for each in tokenize.generate_tokens(file.readline) if each.type == tokenize.STRING]
        words = [re.sub(r"\{[^{}]*\}", "", each) if each[0] in "fr" else each for each in words]
        for word in words:
            if not re.search(r"\bself\b|variables\.", word):
                yield path.relative_to(REPOSITORY), word
    pages = [
        *REPOSITORY.glob("docs/*.md"),
        *REPOSITORY.glob("docs/[ehru]*/*.md"),
        *REPOSITORY.glob("docs/runbooks/*.md"),
    ]
    for path in [
        REPOSITORY / "README.md",
        *pages,
        *REPOSITORY.glob("images/**/*.sh"),
        *REPOSITORY.glob("charts/*/values.yaml"),
    ]:
        if "reports" not in path.parts:
            yield path.relative_to(REPOSITORY), path.read_text()
