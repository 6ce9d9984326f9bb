"""Lists the packages of Debian and of Python in a built image with their versions, from its archive and without running it.

Debian's packages are in dpkg's database. Packages whose files alone were copied, such as those of the bundle, are in its folder status.d,
which scanners read too. Python's packages are in their dist-info folders.

The SPDX document is written here and not by a library: it is one dictionary of what `packages` reads, and `make test-release` has it
validated by spdx-tools (docs/decisions/0171-the-sbom-is-what-dpkg-and-pip-say.md).
"""

import json
import re
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

_DPKG = re.compile(r"^(\./)?var/lib/dpkg/status(\.d/[^/]+)?$")
_PYTHON = re.compile(r"\.dist-info/METADATA$")


def packages(archive: Path) -> list[str]:
    """Return one line for each package of a docker-archive, sorted: its kind, its name, its version, and for Debian its source package."""
    found = {name: text for layer in _layers(archive) for name, text in layer}
    return sorted({line for name, text in found.items() for line in _lines(name, text)})


def spdx(archive: Path, name: str, version: str, digest: str, when: int) -> dict[str, Any]:
    """Return the SPDX 2.3 document of an image: the image with its manifest's digest, and each package that it contains.

    `when` is in seconds since 1970. Licenses are not asserted: dpkg's database has none.
    """
    image = _package("SPDXRef-Image", name, version, f"pkg:oci/{name}@{quote(digest, safe='')}")
    found = [line.split(" ") for line in packages(archive)]
    contents = [_contained(number, *fields) for number, fields in enumerate(found)]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "documentNamespace": f"urn:soperator:sbom:{name}:{digest}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)),
            "creators": [f"Tool: soperator-{version}"],
        },
        "packages": [image, *contents],
        "relationships": [
            _related("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Image"),
            *(_related("SPDXRef-Image", "CONTAINS", each["SPDXID"]) for each in contents),
        ],
    }


def _contained(number: int, kind: str, name: str, version: str, source: str = "") -> dict[str, Any]:
    shown = quote(version, safe="~:")
    if kind == "python":
        return _package(f"SPDXRef-{number}", name, version, f"pkg:pypi/{name.lower().replace('_', '-')}@{shown}")
    purl = f"pkg:deb/debian/{quote(name, safe='')}@{shown}"
    return _package(f"SPDXRef-{number}", name, version, purl) | {"sourceInfo": f"Debian source package {source}"}


def _package(identity: str, name: str, version: str, purl: str) -> dict[str, Any]:
    located = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
    return {
        "SPDXID": identity,
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [located],
    }


def _related(one: str, how: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}


def _layers(archive: Path) -> Iterator[list[tuple[str, str]]]:
    """Yield the files with records of each layer, lowest layer first; a file of a higher layer replaces that of a lower one."""
    with tarfile.open(archive) as outer:
        manifest = outer.extractfile("manifest.json")
        assert manifest
        for name in json.load(manifest)[0]["Layers"]:
            with tarfile.open(fileobj=outer.extractfile(name)) as layer:
                yield [
                    (each.name.removeprefix("./"), (taken.read()).decode(errors="replace"))
                    for each in layer
                    if (_DPKG.search(each.name) or _PYTHON.search(each.name)) and (taken := layer.extractfile(each))
                ]


def _lines(name: str, text: str) -> Iterator[str]:
    if _PYTHON.search(name):
        fields = _fields(text.partition("\n\n")[0])
        yield f"python {fields['Name']} {fields['Version']}"
        return
    for stanza in text.split("\n\n"):
        fields = _fields(stanza)
        if " installed" in fields.get("Status", " installed") and "Package" in fields:
            source = fields.get("Source", fields["Package"]).split()[0]
            yield f"debian {fields['Package']} {fields['Version']} {source}"


def _fields(stanza: str) -> dict[str, str]:
    pairs = (line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith((" ", "\t")))
    return {pair[0]: pair[1].strip() for pair in pairs}
