"""Reads the packages in an image: Debian's with their sources, and Python's.

A database of vulnerabilities names Debian's source packages, so packages are listed by source: one line for libssl3t64 and openssl.
"""

import re
from collections.abc import Iterable

#: Run in a container. Files that are copied without dpkg, as the bundle's are, stand in status.d; where there is no database it fails.
LIST = (
    "sh",
    "-c",
    "test -e /var/lib/dpkg/status || ls /var/lib/dpkg/status.d/* >/dev/null 2>&1 || exit 3; "
    "for each in /var/lib/dpkg/status /var/lib/dpkg/status.d/*; do [ ! -e $each ] || { cat $each; echo; }; done; "
    "for each in /usr/lib/python3/dist-packages/*.dist-info; do [ ! -e $each ] || { echo; echo Python: ${each##*/}; }; done",
)
#: Sources that take part in what comes from outside: the network, users' files, keys. The others are told with --all.
EXPOSED = frozenset({
    "curl", "expat", "glibc", "gnutls28", "gpgme1.0", "http-parser", "hwloc", "json-c", "krb5", "libjwt", "libseccomp", "libyaml", "llhttp", "lua5.1",
    "mariadb", "munge", "nginx", "openldap", "openssh", "openssl", "pam", "pmix", "python3.13", "skopeo", "slurm-wlm", "sqlite3", "squashfs-tools",
    "sssd", "systemd", "umoci", "util-linux", "xz-utils", "zlib",
})  # fmt: skip
_SOURCE = re.compile(r"(\S+)(?: \((\S+)\))?")


def read(text: str) -> dict[str, str]:
    """Return the versions by source package, from the output of LIST; a source with two versions has both.

    Names of Python packages begin with python:.
    """
    found: dict[str, set[str]] = {}
    for stanza in re.split(r"\n\s*\n", text):
        for name, version in _packages(_fields(stanza)):
            found.setdefault(name, set()).add(version)
    return {name: ", ".join(sorted(found[name])) for name in sorted(found)}


def chosen(found: dict[str, str], everything: bool) -> list[str]:
    """Return the lines for people: all packages, or the exposed ones and Python's."""
    shown = {
        name: version for name, version in found.items() if everything or name in EXPOSED or name.startswith("python:")
    }
    return [f"{name} {version}" for name, version in shown.items()]


def _packages(fields: dict[str, str]) -> Iterable[tuple[str, str]]:
    if "Python" in fields:
        name, _, version = fields["Python"].removesuffix(".dist-info").rpartition("-")
        yield f"python:{name}", version
    elif " installed" in fields.get("Status", " installed") and {"Package", "Version"} <= fields.keys():
        source = _SOURCE.match(fields.get("Source", fields["Package"]))
        if source:
            yield source[1], source[2] or fields["Version"]


def _fields(stanza: str) -> dict[str, str]:
    pairs = (line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith((" ", "\t")))
    return {key: value.strip() for key, value in pairs}
