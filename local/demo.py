"""The demo: from nothing to a trained classifier in a Slurm cluster, with the commands of a user.

All steps are commands that a person could type: helm for the installation, kubectl to observe, ssh to work. With `ON`, the path of a
kubeconfig, the demo runs in that cluster, which must be able to pull the images (`SOPERATOR_IMAGES` is the prefix of their names). Without
`ON` the local cluster is started.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local import images, slurm_release
from local.paths import DEFAULT_STATE as STATE
from local.paths import REPOSITORY as ROOT
from local.progress import Failure

KEY = STATE / "ssh" / "id_ed25519"
NAMESPACE = "slurm"
CLUSTER = "demo"
PATIENCE = 600.0


class DemoError(Exception):
    """A step failed; the text names the step and has its output."""


@dataclass(frozen=True)
class Target:
    """The target cluster: its kubeconfig, the search path of commands, and whether it is the local cluster."""

    kubeconfig: str
    path: str
    is_local: bool

    @property
    def env(self) -> dict[str, str]:
        """Return the environment of kubectl and helm with this cluster's kubeconfig and search path."""
        return os.environ | {"KUBECONFIG": self.kubeconfig, "PATH": self.path}

    def run(self, *command: str, stdin: str | None = None) -> str:
        """Return the output of a command; raises DemoError with its errors."""
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=self.env, check=False)
        except FileNotFoundError as error:
            raise DemoError(
                f"{command[0]} is not on PATH: install it, because with ON the demo uses your kubectl and helm"
            ) from error
        if done.returncode:
            raise DemoError(f"{' '.join(command[:6])} … ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def read_object(self, kind: str, name: str) -> dict[str, object]:
        """Return one object as kubectl prints it."""
        found: dict[str, object] = json.loads(self.run("kubectl", "-n", NAMESPACE, "get", kind, name, "-o", "json"))
        return found


class Clock:
    """Prints each step with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """Print one line with the seconds since the start."""
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", flush=True)


def main() -> int:
    """Run the demo; the exit code is 0 if the job succeeded."""
    parser = argparse.ArgumentParser(prog="python3 -m local.demo", description=__doc__)
    parser.add_argument("--only-cluster", action="store_true", help="stop when the Slurm cluster is available")
    parser.add_argument("--auth", choices=("slurm", "munge"), default="slurm")
    arguments = parser.parse_args()
    clock = Clock()
    try:
        target = prepare(clock)
        install(target, clock, arguments.auth)
        address = wait_available(target, clock)
        if not arguments.only_cluster:
            train(address, clock)
        print(f"\nLog in:   {' '.join(ssh(address, 'alice' if not arguments.only_cluster else 'root'))}")
        print(f"Look:     KUBECONFIG={target.kubeconfig} kubectl -n {NAMESPACE} get slurmcluster,nodeset,pods")
    except (DemoError, Failure) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


def prepare(clock: Clock) -> Target:
    """Return the target cluster; the local cluster is started and its images are loaded first."""
    if chosen := chosen_kubeconfig(os.environ):
        clock.say(f"using the cluster of {chosen}")
        return Target(chosen, os.environ["PATH"], is_local=False)
    for module, words in (
        ("local", ["machine"]),
        ("local.images", ["build"]),
        ("local", ["up", "--nodes", os.environ.get("NODES", "2"), "--node-monitor-grace-period", "20s"]),
    ):
        _self(module, *words)
    clock.say("Kubernetes runs; loading the images into its Nodes")
    _self("local", "load", *[str(image.tar) for image in images.built()])
    return local_target()


def chosen_kubeconfig(environment: Mapping[str, str]) -> str:
    """Return the kubeconfig of the target cluster, empty for the local one.

    Another cluster must be named in ON: a KUBECONFIG that was set for other work does not select it. Raises DemoError.
    """
    named, given = environment.get("ON", ""), environment.get("KUBECONFIG", "")
    if named or not given or Path(given).resolve() == (STATE / "kubeconfig").resolve():
        return named
    raise DemoError(
        f"KUBECONFIG={given} is not the local cluster: `make demo ON={given}` installs into that one; "
        "for a local one run `unset KUBECONFIG`"
    )


def local_target() -> Target:
    """Return the local cluster with the options of its last start, and its programs."""
    from local import binaries

    return Target(str(STATE / "kubeconfig"), f"{binaries.folder()}:{os.environ['PATH']}", is_local=True)


def install(target: Target, clock: Clock, auth: str) -> None:
    """Install the charts: the CRDs, the operator, storage in the local cluster, and the Slurm cluster."""
    clock.say("installing the charts soperator-crds, soperator, slurm-cluster")
    helm(target, "soperator-crds", "soperator-system")
    helm(target, "soperator", "soperator-system", *image_settings(target))
    if target.is_local:
        helm(
            target,
            "slurm-cluster-storage",
            NAMESPACE,
            f"cluster={CLUSTER}",
            f"hostPath.path={STATE}/storage",
            name="storage",
        )
    cluster: dict[str, object] = {
        "auth": {"type": auth},
        "login": {"rootAuthorizedKeys": [public_key()]},
        "upgrade": {"mode": "WithOperator"},  # whoever works on the images sees them at once
    }
    if target.is_local:
        cluster |= {
            "jail": {"claim": {"name": f"{CLUSTER}-jail"}},
            "controller": {"state": {"name": f"{CLUSTER}-state"}},
        }
    values = {
        "cluster": slurm_release.with_settings(cluster),
        "nodeSets": {"worker": {"replicas": 2, "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}},
    }
    helm(target, "slurm-cluster", NAMESPACE, name=CLUSTER, values=json.dumps(values))


def image_settings(target: Target) -> list[str]:
    """Return the images of the operator and its clusters: the newly built ones, by content, or those of a registry, by prefix."""
    if not target.is_local:
        return [f"images.prefix={os.environ.get('SOPERATOR_IMAGES', images.PREFIX)}"]
    return [f"images.{name}={tag}" for image in images.built() for name, tag in image.references().items()]


def helm(
    target: Target, chart: str, namespace: str, *settings: str, name: str = "", values: str = "", wait: str = ""
) -> None:
    """Install or upgrade a chart; with `wait`, such as 5m, until all its objects are ready."""
    words = [
        "helm",
        "upgrade",
        "--install",
        name or chart,
        str(ROOT / "charts" / chart),
        "-n",
        namespace,
        "--create-namespace",
        *(["--wait", "--timeout", wait] if wait else []),
    ]
    words += [word for setting in settings for word in ("--set", setting)] + (["-f", "-"] if values else [])
    target.run(*words, stdin=values or None)


def wait_available(target: Target, clock: Clock) -> str:
    """Wait until the cluster is ready, and print each new reason; return the ssh command of login."""
    reported, until = "", time.monotonic() + PATIENCE
    while time.monotonic() < until:
        status = target.read_object("slurmcluster", CLUSTER).get("status") or {}
        assert isinstance(status, dict)
        why = status.get("why", "the operator has not observed the cluster yet")
        if status and not why:
            clock.say(f"available: {status['workers']} workers, {status['login']} login")
            return str(status["address"])
        if why != reported:
            reported = why
            clock.say(why)
        time.sleep(0.3)
    raise DemoError(f"the Slurm cluster is not available after {PATIENCE:.0f} s: {reported}")


def train(address: str, clock: Clock) -> None:
    """Create a user as root; as that user copy the example, submit it, wait for it and read its output."""
    clock.say("creating the user alice, in the jail, as root over SSH")
    make_user(address, "alice")
    clock.say("submitting the training as alice: sbatch --wait train.sbatch")
    copy = subprocess.run(["tar", "-C", str(ROOT / "examples"), "-c", "digits"], capture_output=True, check=True)
    remote(address, "alice", "tar -x", stdin=copy.stdout)
    try:
        remote(address, "alice", "cd digits && rm -f digits-*.out train.log && sbatch --wait train.sbatch")
    except DemoError as error:
        raise DemoError(explained(str(error))) from error
    output = remote(address, "alice", "cat digits/digits-*.out")
    print(output)
    accuracy = [line.split()[1] for line in output.splitlines() if line.startswith("accuracy ")]
    if not accuracy or float(accuracy[0]) < 0.95:
        raise DemoError("the training did not reach a held-out accuracy of 0.95")
    clock.say(f"the job ended with a held-out accuracy of {accuracy[0]}")


def explained(error: str) -> str:
    """Return the error of a submission, with a remedy if accounting requires an account that the demo's user does not have."""
    if "Invalid account" not in error:
        return error
    return (
        f"{error}\nspec.accounting.enforce of the SlurmCluster {CLUSTER} requires an account, and alice has none. Create one, as root on the login "
        "node: sacctmgr -i add account demo && sacctmgr -i add user alice account=demo. Or remove the requirement: "
        f"""kubectl -n {NAMESPACE} patch slurmcluster {CLUSTER} --type=merge -p '{{"spec": {{"accounting": {{"enforce": null}}}}}}'"""
    )


def make_user(address: str, user: str) -> None:
    """Create a user of the cluster who logs in with the demo's key, as an administrator does once on any login node."""
    remote(address, "root", f"createuser {user} '{public_key()}'")


def ssh(address: str, user: str) -> list[str]:
    """Return the ssh command of a user, derived from the command for root in the cluster's status."""
    words = address.replace("root@", f"{user}@").split()
    options = [
        "-i",
        str(KEY),
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-o",
        "LogLevel=ERROR",
    ]
    return [words[0], *options, *words[1:]]


def remote(address: str, user: str, command: str, stdin: bytes = b"") -> str:
    """Return the output of a command on the login node; retries, because a newly started login may refuse connections for a moment."""
    done = _over_ssh(address, user, command, stdin)
    for _ in range(120):
        if done.returncode != 255:
            break
        time.sleep(0.5)
        done = _over_ssh(address, user, command, stdin)
    if done.returncode:
        raise DemoError(
            f"{user}: {command!r} ended with {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}"
        )
    return done.stdout.decode()


def _over_ssh(address: str, user: str, command: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*ssh(address, user), command], input=stdin, capture_output=True, check=False)


def public_key() -> str:
    """Return the public part of the demo's own SSH key, which is created at its first use."""
    if not KEY.exists():
        KEY.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(KEY), "-C", "soperator-demo"], check=True
        )
    return KEY.with_suffix(".pub").read_text().strip()


def _self(module: str, *words: str) -> None:
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else shutil.which("python3") or sys.executable
    if subprocess.run([python, "-m", module, *words], cwd=ROOT, check=False).returncode:
        raise DemoError(f"python3 -m {module} {' '.join(words[:3])} failed; its output is above")


if __name__ == "__main__":
    sys.exit(main())
