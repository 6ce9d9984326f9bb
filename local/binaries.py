"""The programs of a cluster, built from source once, or copied from a folder of prebuilt programs.

Kubernetes, containerd, runc, helm, KWOK and a CoreDNS with nine plugins share one module (``go/kubernetes``), so that their common packages
are compiled once; etcd needs older libraries and has its own module. The name of the result's folder is a hash of all inputs, so an
unchanged input needs no build.
"""

import hashlib
import os
import shutil
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from local import golang
from local.paths import GO_SOURCES, cache, locked
from local.process import tail
from local.progress import Failure, say

KUBERNETES = "1.36.3"
_VERSION = "k8s.io/component-base/version"
_LINK = f"-s -w -X {_VERSION}.gitVersion=v{KUBERNETES} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=36"
_KUBERNETES = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubeadm",
    "kubectl",
)
_CONTAINERD = ("containerd", "containerd-shim-runc-v2", "ctr")
PROGRESS_EVERY_S = 15.0


@dataclass(frozen=True)
class Build:
    """One ``go build``: package → name of its program; without ``cgo`` the programs are static."""

    module: str
    packages: dict[str, str]
    tags: str = ""
    cgo: bool = False


BUILDS = (
    Build(
        "kubernetes",
        {f"k8s.io/kubernetes/cmd/{name}": name for name in _KUBERNETES}
        | {f"github.com/containerd/containerd/v2/cmd/{name}": name for name in _CONTAINERD}
        | {"helm.sh/helm/v4/cmd/helm": "helm", "sigs.k8s.io/kwok/cmd/kwok": "kwok", "./coredns": "coredns"},
    ),
    # Without seccomp compiled in, which is C, runc refuses every pod that asks for a seccomp profile.
    Build("kubernetes", {"github.com/opencontainers/runc": "runc"}, tags="seccomp", cgo=True),
    Build("etcd", {"go.etcd.io/etcd/server/v3": "etcd"}),
)
PROGRAMS = tuple(program for build in BUILDS for program in build.packages.values())


def key(sources: Path = GO_SOURCES, taken_from: str = "") -> str:
    """Return the name of the result: a hash of modules, commands, and the source of prebuilt programs."""
    commands = [command(build, Path("go"), Path("bin")) for build in BUILDS]
    digest = hashlib.sha256(f"{commands}{taken_from}".encode())
    for file in sorted(sources.rglob("*")):
        if file.is_file():
            digest.update(f"{file.relative_to(sources)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def folder() -> Path:
    """Return the folder that has the programs after ``make``."""
    return cache() / "bin" / key(taken_from=os.environ.get("KUBERNETES_BINARIES", ""))


def command(build: Build, go: Path, into: Path) -> list[str]:
    """Return the ``go build`` command; it leaves out debug information, which takes time to generate."""
    tags = ["-tags", build.tags] if build.tags else []
    one = next(iter(build.packages.values())) if len(build.packages) == 1 else ""
    flags = ["-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", _LINK, *tags, "-o", f"{into}/{one}"]
    return [str(go), "build", *flags, *build.packages]


def _packages(build: Build, go: Path, environment: dict[str, str]) -> int:
    """Return how many packages the build compiles if none is in Go's cache; 0 if Go does not list them."""
    tags = ["-tags", build.tags] if build.tags else []
    listed = subprocess.run(
        [str(go), "list", "-deps", "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", *tags, *build.packages],
        cwd=GO_SOURCES / build.module,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return len(listed.stdout.split()) if listed.returncode == 0 else 0


def compiled(log: str) -> int:
    """Return how many packages a log of `go build -v` names: each is alone on its line; lines about downloads begin with "go:"."""
    return sum(1 for line in log.splitlines() if line and " " not in line and not line.startswith(("go:", "#")))


def progress(done: int, total: int, seconds: float) -> str:
    """Return the progress message of a build, from the compiled packages, the total, and the seconds so far.

    The remaining time is in proportion to the packages. It is left out before a twentieth is compiled: packages differ, and downloads come
    first.
    """
    if not total:
        return f"{done} packages are compiled"
    done = min(done, total)
    summary = f"{done} of {total} packages are compiled ({100 * done // total} %)"
    if done == total:
        return f"{summary}, the programs are being linked"
    if done * 20 < total:
        return summary
    left = seconds * (total - done) / done
    return f"{summary}, about {max(1, round(left / 60))} min left"


def _run(build: Build, go: Path, into: Path, log: Path) -> None:
    environment = golang.environment() | {"CGO_ENABLED": "1" if build.cgo else "0"}
    total = _packages(build, go, environment)
    began, start = time.monotonic(), log.stat().st_size
    verb, *rest = command(build, go, into)[1:]  # -v only reports: it is not part of what the folder is named after
    with log.open("ab") as output:
        running = subprocess.Popen(
            [str(go), verb, "-v", *rest], cwd=GO_SOURCES / build.module, env=environment, stdout=output, stderr=output
        )
        try:
            while True:
                try:
                    status = running.wait(timeout=PROGRESS_EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    with log.open("rb") as written:
                        written.seek(start)
                        done = compiled(written.read().decode(errors="replace"))
                    say(f"building {_names(build)}: {progress(done, total, time.monotonic() - began)}")
        except BaseException:
            running.terminate()
            running.wait()
            raise
    if status:
        raise Failure(f"the build of {', '.join(build.packages.values())} failed, log {log}:\n{tail(log)}")


def _names(build: Build) -> str:
    names = list(build.packages.values())
    return names[0] if len(names) == 1 else f"{len(names)} programs"


def _take(source: str, into: Path) -> None:
    """Copy prebuilt programs from a folder or download them from a base URL (BASE/kubectl …)."""
    for program in PROGRAMS:
        target = into / program
        if "://" in source:
            address = f"{source.rstrip('/')}/{program}"
            say(f"fetching {address}")
            with urllib.request.urlopen(address, timeout=60) as response, target.open("wb") as file:
                shutil.copyfileobj(response, file)
        else:
            found = Path(source) / program
            if not found.is_file():
                raise Failure(f"KUBERNETES_BINARIES={source} holds no {program}; it needs {', '.join(PROGRAMS)}")
            shutil.copyfile(found, target)
        target.chmod(0o755)


def make() -> Path:
    """Return the folder with all programs, and build it if it does not exist."""
    result = folder()
    if not result.exists():
        with locked(result.with_suffix(".lock")):
            _make(result)
    return result


def _make(result: Path) -> None:
    if result.exists():  # Somebody else made it while we waited for the lock.
        return
    partial = result.with_suffix(".partial")
    partial.mkdir(parents=True, exist_ok=True)
    source = os.environ.get("KUBERNETES_BINARIES", "")
    began = time.monotonic()
    if source:
        _take(source, partial)
    else:
        go = golang.find()
        log = cache() / "build.log"
        log.write_bytes(b"")
        say(f"building {len(PROGRAMS)} programs with {go}; the first time this takes about ten minutes on two cores")
        for build in BUILDS:
            _run(build, go, partial, log)
        # Eight gigabytes that only a changed input would read again; the next build is a cold one.
        shutil.rmtree(cache() / "go", ignore_errors=True)
    partial.rename(result)
    say(f"{len(PROGRAMS)} programs are in {result} ({time.monotonic() - began:.0f} s)")
