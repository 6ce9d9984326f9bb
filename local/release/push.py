"""Publishes a release's images and charts in a registry: REGISTRY/ROLE:VERSION and REGISTRY/charts/NAME:VERSION.

A version that is in the registry with other content is refused, because clusters may run it. Passwords are those of `skopeo login` and
`helm registry login`.
"""

import hashlib
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from local.progress import Failure, say
from local.release import tools
from local.release.images import Released

_MISSING = re.compile(r"manifest unknown|name unknown|not found|status 404|repository does not exist", re.IGNORECASE)
_LOOPBACK = re.compile(r"^(127\.[0-9.]+|localhost|\[::1\])(:\d+)?$")
_REGISTRY = re.compile(r"^[A-Za-z0-9.\[\]:-]+(/[a-z0-9][a-z0-9._-]*)*$")


def check(registry: str) -> None:
    """Raise Failure if REGISTRY is not host[:port][/path]."""
    if not _REGISTRY.fullmatch(registry):
        raise Failure(f"REGISTRY={registry}: use host:port/path without a protocol and without a slash at the end")


def is_loopback(registry: str) -> bool:
    """Return whether a registry is on this machine, which is reached without TLS."""
    return bool(_LOOPBACK.match(registry.partition("/")[0]))


def push(registry: str, version: str, released: Sequence[Released], charts: Sequence[Path]) -> None:
    """Push all images, then all charts; nothing is pushed if one of them is there with other content."""
    wanted = [(f"{registry}/{role}:{version}", image) for image in released for role in image.roles]
    packages = [
        (f"{registry}/charts/{chart.name.removesuffix(f'-{version}.tgz')}:{version}", chart) for chart in charts
    ]
    for reference, image in wanted:
        refuse_other(reference, _digest(reference), image.digest)
    for reference, chart in packages:
        refuse_other(reference, _layer(reference), f"sha256:{hashlib.sha256(chart.read_bytes()).hexdigest()}")
    for reference, image in wanted:
        source = f"oci-archive:{image.archive}:{version}"
        tools.run(
            [
                "skopeo",
                "copy",
                "--quiet",
                "--preserve-digests",
                *_tls("dest", registry),
                source,
                f"docker://{reference}",
            ]
        )
        say(f"pushed {reference}@{image.digest}")
    plain = ["--plain-http"] if is_loopback(registry) else []
    for reference, chart in packages:
        if _layer(reference) is None:
            tools.run([tools.helm(), "push", str(chart), f"oci://{registry}/charts", *plain])
            say(f"pushed {reference}")


def refuse_other(reference: str, there: str | None, ours: str) -> None:
    """Raise Failure if the registry has another digest under a reference than this release; None is no digest."""
    if there not in (None, ours):
        raise Failure(
            f"{reference}: the registry has {there}, and this release has {ours}: nothing was pushed. Use another version, "
            "or delete the one in the registry if nobody can run it."
        )


def _raw(reference: str) -> str | None:
    """Return the manifest of a reference as it is in the registry; None if it has none."""
    words = ["skopeo", "inspect", "--raw", *_tls("", reference), f"docker://{reference}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    if _MISSING.search(done.stderr):
        return None
    raise Failure(f"{reference}: the registry does not say whether it has it: {done.stderr.strip()[-500:]}")


def _digest(reference: str) -> str | None:
    raw = _raw(reference)
    return None if raw is None else f"sha256:{hashlib.sha256(raw.encode()).hexdigest()}"


def _layer(reference: str) -> str | None:
    """Return the digest of a chart's package; the manifest around it has the time of the push."""
    raw = _raw(reference)
    return None if raw is None else str(json.loads(raw)["layers"][0]["digest"])


def _tls(side: str, registry: str) -> list[str]:
    """Return skopeo's option for a registry without TLS, which only a registry on this machine may be."""
    return [f"--{side}-tls-verify=false".replace("---", "--")] if is_loopback(registry) else []
