"""``python3 -m local``: a real Kubernetes cluster on this machine."""

import argparse
import os
import sys
from pathlib import Path

from local import binaries, cluster, debian, lab, pods, prometheus, status
from local.machines import inside, running_init
from local.paths import DEFAULT_STATE, cache, locked
from local.plan import node_plan
from local.progress import Failure, say


def parser() -> argparse.ArgumentParser:
    """Return the parser of the commands and their arguments."""
    top = argparse.ArgumentParser(prog="python3 -m local", description=__doc__)
    top.add_argument("--state", type=Path, default=DEFAULT_STATE, help="the cluster's folder (default: %(default)s)")
    commands = top.add_subparsers(dest="command", required=True)
    # --state is understood after the command as well.
    state = argparse.ArgumentParser(add_help=False)
    state.add_argument("--state", type=Path, default=argparse.SUPPRESS, help=argparse.SUPPRESS)

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[state])

    add("machine", "install the Debian packages that are missing, and Prometheus")
    add("binaries", "build the programs, or take them from $KUBERNETES_BINARIES; print their folder")
    up = add("up", "start a cluster, or the parts of it that do not run")
    up.add_argument("--nodes", type=int, default=2, help="how many Nodes (default: %(default)s)")
    up.add_argument(
        "--node-monitor-grace-period",
        metavar="TIME",
        help="time after which a Node that does not respond counts as lost, e.g. 20s",
    )
    load = add("load", "import docker-archives into the Nodes")
    load.add_argument("archives", nargs="+", type=Path, metavar="IMAGE.tar")
    load.add_argument("--node", help="into this Node only")
    node = add("node", "stop a Node or disconnect its network, and restore it; run a command on the Node")
    node.add_argument("action", choices=("stop", "start", "cut", "mend", "exec"))
    node.add_argument("name")
    node.add_argument("--hard", action="store_true", help="stop: also delete the Node's disk (its images are kept)")
    node.add_argument("argv", nargs="*", metavar="-- COMMAND", help="exec: command to run (default: a shell)")
    component = add(
        "component", "stop, kill or suspend one program, and restore it: apiserver, etcd, node-1/kubelet, …"
    )
    component.add_argument("action", choices=("stop", "start", "restart", "pause", "resume"))
    component.add_argument("name")
    pod = add("pod", "kill or suspend the processes of a pod's container; delay or fail the answers of its port")
    pod.add_argument("action", choices=(*pods.SIGNALS, "spoil"))
    pod.add_argument("pod", metavar="NAMESPACE/POD")
    pod.add_argument("container")
    pod.add_argument("--port", type=int, default=6820, help="spoil: which port (default: %(default)s, slurmrestd's)")
    pod.add_argument("--delay", type=float, default=0.0, metavar="SECONDS", help="spoil: delay of each answer")
    pod.add_argument("--status", type=int, default=0, help="spoil: answer with this HTTP status")
    add("status", "show which programs run; exit code 1 if one does not")
    add("down", "stop the cluster; keep only caches, keys and logs")
    add("clean", "stop the cluster, and remove every cache")
    return top


def node(arguments: argparse.Namespace) -> None:
    """Run ``node stop|start|cut|mend|exec NAME``."""
    state = cluster.state_of(arguments.state)
    match arguments.action:
        case "stop":
            with locked(state.lock):
                lab.node_stop(state, arguments.name, hard=arguments.hard)
        case "start":
            with locked(state.lock):
                lab.node_start(state, arguments.name)
        case "cut" | "mend":
            lab.node_cut(arguments.name, whole=arguments.action == "mend")
        case "exec":
            init = running_init(node_plan(arguments.name), cluster.records_of(state))
            if init is None:
                raise Failure(f"{arguments.name} is off")
            argv = inside(init.pid, arguments.argv or ["bash"])
            os.execvp(argv[0], argv)


def pod(arguments: argparse.Namespace) -> None:
    """Run ``pod kill|pause|resume|spoil NAMESPACE/POD CONTAINER``."""
    state = cluster.state_of(arguments.state)
    if arguments.action == "spoil":
        lab.spoil(state, arguments.pod, arguments.container, arguments.port, arguments.delay, arguments.status)
    pods.act(state, arguments.pod, arguments.container, arguments.action)


def clean(arguments: argparse.Namespace) -> None:
    """Stop the cluster and remove every cache."""
    cluster.down(cluster.state_of(arguments.state))
    cluster.remove_caches(cluster.state_of(arguments.state))
    say(f"removed {cache()} and {arguments.state}")


def carry_out(arguments: argparse.Namespace) -> int:
    """Run one command and return the exit code."""
    state = cluster.state_of(arguments.state)
    match arguments.command:
        case "machine":
            debian.install()
            prometheus.fetch()
        case "binaries":
            print(binaries.make())
        case "up":
            cluster.up(state, arguments.nodes, arguments.node_monitor_grace_period)
        case "load":
            with locked(state.lock):
                cluster.load_images(state, arguments.archives, arguments.node)
        case "node":
            node(arguments)
        case "pod":
            pod(arguments)
        case "component":
            with locked(state.lock):
                lab.component(state, arguments.name, arguments.action)
        case "status":
            return 0 if status.show(state) else 1
        case "down":
            cluster.down(state)
        case "clean":
            clean(arguments)
    return 0


def main() -> int:
    """Run the command line; print a failure with a known remedy without a traceback."""
    try:
        return carry_out(parser().parse_args())
    except (Failure, ValueError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # The reader (head, grep -q) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted; run down to stop the started programs", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
