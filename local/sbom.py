"""Lists the packages of Debian and of Python in a built image with their versions, from its archive and without running it.

Debian's packages are in dpkg's database. Packages whose files alone were copied, such as those of the bundle, are in its folder status.d,
which scanners read too. Python's packages are in their dist-info folders.
"""

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

_DPKG = re.compile(r"^(\./)?var/lib/dpkg/status(\.d/[^/]+)?$")
_PYTHON = re.compile(r"\.dist-info/METADATA$")


def packages(archive: Path) -> list[str]:
    """Return one line for each package of a docker-archive, sorted: its kind, its name, its version, and for Debian its source package."""
    found = {name: text for layer in _layers(archive) for name, text in layer}
    return sorted({line for name, text in found.items() for line in _lines(name, text)})


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
