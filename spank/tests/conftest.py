"""Shared fixtures: the programs in a sanitizer build, a jail made of empty folders and the machine's /usr, and pods."""

import os
import random
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from pods import HERE, POD_PYTHON, PODS, SPANK, Pod
from trixie import Slurm, plugin, slurm

__all__ = ["PODS", "POD_PYTHON", "Build", "Jail", "Pod", "plugin", "slurm"]

SANITIZE = "-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"

collect_ignore_glob = ["stub/*"]

settings.register_profile("searching", deadline=None, database=None, print_blob=True)
settings.load_profile("searching")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Use a new random seed in each run: the header of the output has it, and `--hypothesis-seed` repeats the run."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


@dataclass(frozen=True)
class Build:
    """Return a folder with `jail`, `spank_jail.so` and `stepd`."""

    folder: Path

    @property
    def jail(self) -> str:
        return str(self.folder / "jail")


def compile_all(folder: Path, flags: str) -> Build:
    """Compile all programs against the stub of Slurm's header."""
    make = ["make", "-s", "-C", str(SPANK), f"BUILD={folder}", f"CFLAGS={flags}", f"CPPFLAGS=-I{HERE}/stub"]
    subprocess.run(make, check=True)
    stepd = ["cc", *flags.split(), "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{HERE}/stub", "-rdynamic"]
    subprocess.run([*stepd, "-o", str(folder / "stepd"), str(HERE / "stepd.c"), "-ldl", "-lpthread"], check=True)
    return Build(folder)


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Build the programs with ASan and UBSan, which abort a program at the first error."""
    return compile_all(tmp_path_factory.mktemp("build"), SANITIZE)


@dataclass
class Jail:
    """A root of empty folders, its plan, and methods that run commands in it."""

    build: Build
    root: Path
    plan: Path
    lines: list[Sequence[str]] = field(default_factory=list)

    def write_plan(self, *more: Sequence[str]) -> None:
        """Write the plan, with additional lines at its end."""
        self.plan.write_text("".join("\t".join(line) + "\n" for line in [*self.lines, *more]))

    def run(self, pod: Pod, *command: str, keep_caps: bool = False) -> subprocess.CompletedProcess[str]:
        """Run `jail run` in a pod."""
        keep = ["--keep-caps"] if keep_caps else []
        return pod.run(self.build.jail, "run", "--plan", str(self.plan), *keep, "--", *command)

    def python(self, pod: Pod, program: str, keep_caps: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a Python program in the jail."""
        return self.run(pod, POD_PYTHON, "-I", "-c", program, keep_caps=keep_caps)


@pytest.fixture(params=PODS.values(), ids=PODS.keys())
def pod(request: pytest.FixtureRequest) -> Pod:
    """Return every kind of pod in turn."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    return request.param


def planned(made: Jail) -> Jail:
    """Return a jail whose file has the plan with which most tests begin."""
    made.lines = [
        ("root", str(made.root), "/", "-", "the shared root"),
        ("rbind", "/usr", "/usr", "ro", "programs"),
        ("tmpfs", "-", "/tmp", "nosuid,nodev,size=8m,mode=1777", "private"),
        ("proc", "-", "/proc", "-", "processes"),
        ("dev", "-", "/dev", "minimal", "devices"),
        ("sys", "-", "/sys", "ro", "the machine"),
    ]
    made.write_plan()
    return made


@pytest.fixture
def jail(build: Build, tmp_path: Path) -> Iterator[Jail]:
    """Return a jail in a folder whose parents the pod's other users may traverse."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    root = tmp_path / "claim" / "root"
    for name in ("usr", "etc", "tmp", "proc", "dev", "sys", "run", "home", "data", "var/spool"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "marker-of-the-jail").touch()
    return planned(Jail(build, root, tmp_path / "plan"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add Slurm's logs to the report of a failed test, because they are deleted with Slurm."""
    report = yield
    if report.failed and isinstance(slurm := getattr(item, "funcargs", {}).get("slurm"), Slurm):
        report.sections.append(("Slurm", slurm.tell()))
    return report


def pytest_report_header(config: pytest.Config) -> str:
    """Print the environment of the tests."""
    seed = f"--hypothesis-seed={config.option.hypothesis_seed}"
    return f"python {sys.version_info.major}.{sys.version_info.minor}, root: {os.geteuid() == 0}, {seed}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the environment again after a failure, because pytest does not print the header with -q."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(
            f"inputs were those of --hypothesis-seed={terminalreporter.config.option.hypothesis_seed}"
        )
