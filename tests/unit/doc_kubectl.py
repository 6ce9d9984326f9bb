"""What is wrong with a kubectl command of the pages, as far as the definitions of our kinds say it; kubectl itself is not needed."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from soperator.api.base import GROUP
from soperator.crdgen.conditions import KNOWN
from soperator.crdgen.labels import MARKS

ROOT = Path(__file__).resolve().parents[2]
#: Kinds of Kubernetes, and of others, that the pages name in kubectl commands.
KINDS = {
    *(
        "clusterrolebinding",
        "configmap",
        "job",
        "namespace",
        "node",
        "pod",
        "pv",
        "pvc",
        "rolebinding",
        "secret",
        "service",
        "statefulset",
    ),
    *(
        "configmaps",
        "jobs",
        "nodes",
        "pods",
        "secrets",
        "services",
        "deploy",
        "deployment",
        "deployments",
        "events",
        "storageclass",
    ),
    # of the systems that `soperator import` reads
    *(f"{each}.slurm.nebius.ai" for each in ("slurmclusters", "nodesets", "activechecks")),
    *(
        f"{each}.slinky.slurm.net"
        for each in ("controllers", "nodesets", "loginsets", "restapis", "accountings", "tokens")
    ),
}
KUBECTL = {
    *(
        "annotate",
        "apply",
        "create",
        "delete",
        "describe",
        "drain",
        "exec",
        "get",
        "label",
        "logs",
        "patch",
        "port-forward",
        "rollout",
    ),
    *("run", "scale", "taint", "uncordon", "wait"),
}
#: Subcommands whose next words are kinds with names.
ON_OBJECTS = {"annotate", "delete", "describe", "get", "label", "patch", "scale", "wait"}
#: Options of kubectl with a value in the next word.
VALUED = {"-n", "-p", "-o", "-l", "-f", "-c", "--type", "-L", "--namespace", "--selector"}


@cache
def _ours() -> dict[str, dict[str, Any]]:
    """The schemas of our kinds by each name that kubectl takes."""
    found = {}
    for file in ROOT.glob("charts/soperator-crds/templates/*.yaml"):
        spec = yaml.safe_load(file.read_text())["spec"]
        names = spec["names"]
        for name in (names["plural"], names["singular"], *names.get("shortNames", []), *names.get("categories", [])):
            found[name] = spec["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def kubectl_faults(words: list[str]) -> list[str] | None:
    """Subcommand, kinds, the fields of patches and paths, conditions and annotations."""
    if words[0] != "kubectl":
        return None
    options, rest = _options(words[1:])
    if not rest or rest[0] not in KUBECTL:
        return [f"no subcommand {rest[:1]}"]
    verb, *objects = rest
    if verb not in ON_OBJECTS or "-f" in options:
        return []
    if not objects:
        return ["no kind is named"]
    slashed = [each for each in objects if "/" in each and "=" not in each]
    plain = [each for each in objects if "/" not in each and "=" not in each]
    wrong = ["kinds beside kind/name"] if slashed and plain else []
    kinds = [each.partition("/")[0] for each in slashed] or objects[0].split(",")
    wrong += [f"no kind {kind}" for kind in kinds if kind not in KINDS and kind not in _ours()]
    schemas = [_ours()[kind] for kind in kinds if kind in _ours()]
    for schema in schemas:
        wrong += _fields(schema, options)
    wrong += _marks(objects) if verb in ("annotate", "label") and schemas else []
    return wrong + [
        f"no condition {kind}"
        for kind in re.findall(r"condition=(\w+)", " ".join(words))
        if schemas and kind not in KNOWN
    ]


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options of a kubectl command with their values, and the other words."""
    options: dict[str, str] = {}
    rest: list[str] = []
    here = iter(words[: words.index("--")] if "--" in words else words)
    for word in here:
        name, is_set, value = word.partition("=")
        if not word.startswith("-"):
            rest.append(word)
        elif is_set:
            options[name] = value
        else:
            options[word] = next(here, "") if word in VALUED else ""
    return options, rest


def _fields(schema: dict[str, Any], options: dict[str, str]) -> list[str]:
    """Fields that a patch or a path names, and the kind has not."""
    wrong = []
    if "-p" in options and options.get("--type") == "merge":
        try:
            wrong += _unknown(schema, json.loads(options["-p"]), "")
        except ValueError as error:
            wrong.append(f"the patch is no JSON: {error}")
    for text in (options.get("-o", ""), options.get("--for", "")):
        for path in re.findall(r"\{\.((?:status|spec)[\w.]*)", text):
            wrong += _unknown(schema, _nested(path.split(".")), "")
        wrong += [f"no condition {kind}" for kind in re.findall(r'@\.type=="(\w+)"', text) if kind not in KNOWN]
    return wrong


def _nested(path: list[str]) -> dict[str, Any]:
    """A path as the object that has it; an end that nothing follows is no value to look into."""
    here: Any = None
    for name in reversed(path):
        here = {name: here}
    assert isinstance(here, dict)
    return here


def _unknown(schema: dict[str, Any], value: object, at: str) -> list[str]:
    """The paths of a value for which a schema has no field."""
    if isinstance(value, list):
        return [each for item in value for each in _unknown(schema.get("items", {}), item, at)]
    fields = schema.get("properties")
    if not isinstance(value, dict) or fields is None or schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    wrong = [f"no field {at}.{name}" for name in value if name not in fields and name != "metadata"]
    for name in value.keys() & fields.keys():
        wrong += _unknown(fields[name], value[name], f"{at}.{name}")
    return wrong


def _marks(objects: list[str]) -> list[str]:
    """Our annotations and labels that no page of the reference has."""
    known = {row.key for row in MARKS}
    keys = [re.split(r"=|-$", each)[0] for each in objects if each.startswith(f"{GROUP}/")]
    return [f"no annotation {key}" for key in keys if key not in known]


#: A path of fields in a code span, with a value or without.
PATH = re.compile(r"`([a-z]\w*(?:\[\])?(?:\.[a-zA-Z]\w*(?:\[\])?)+)(?:: [^`]*)?`")


def unknown_paths(text: str) -> list[str]:
    """The paths in code spans that begin as a spec of ours does, or with `spec` or `status`, and lead nowhere in any of our kinds."""
    schemas = list({id(each): each for each in _ours().values()}.values())
    tops = {name for each in schemas for name in each["properties"]["spec"]["properties"]}
    wrong = []
    for found in PATH.findall(text):
        path = [each.removesuffix("[]") for each in found.split(".")]
        if path[0] in tops:
            path = ["spec", *path]
        elif path[0] not in ("spec", "status"):
            continue
        if not any(_leads(schema, path) for schema in schemas):
            wrong.append(found)
    return wrong


def _leads(schema: dict[str, Any], path: list[str]) -> bool:
    """Whether a schema has a path; what it passes through to Kubernetes, and a map, may have any."""
    here = schema
    for name in path:
        here = here.get("items", here)
        if "properties" not in here:
            return here.get("type") == "object" or "x-kubernetes-preserve-unknown-fields" in here
        if name not in here["properties"]:
            return False
        here = here["properties"][name]
    return True
