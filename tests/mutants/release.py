"""Conditions of a release that protect what clusters already run, and what a signature says."""

from tests.mutants.mutant import Mutant

R, T = "local/release", ("tests/unit/local/test_release.py",)

RELEASE = [
    Mutant(
        f"{R}/push.py",
        "if there not in (None, ours):",
        "if False:",
        "an image that clusters run, which another one replaces under the same version",
        T,
    ),
    Mutant(
        f"{R}/push.py",
        "return bool(_LOOPBACK.match(",
        "return bool(True or _LOOPBACK.match(",
        "the password of a registry, which goes out without TLS",
        T,
    ),
    Mutant(
        f"{R}/__main__.py",
        "if version != images.version():",
        "if False:",
        "the version that a program reports, which is not the one of its chart",
        T,
    ),
    Mutant(
        f"{R}/__main__.py",
        "if uncommitted:",
        "if False:",
        "the commit of a release, whose content is not in it",
        T,
    ),
    Mutant(
        f"{R}/charts.py",
        "if len(found) != 1:",
        "if False:",
        "the images of a chart, which a release did not find in its values",
        T,
    ),
]
