"""Runs NVIDIA's diagnostics, `dcgmi diag -r LEVEL -j`, if DCGM is installed in the jail.

Its JSON names a test, and for each GPU Pass, Fail, Warn or Skip. A failure that DCGM classifies as one of the configuration (persistence
mode is off) is the same on all nodes and not a fault of one node: it is counted separately. Source: DCGM's NvvsJsonStrings.h (3: gpu_ids,
warnings as texts; 4: entity_id, warnings with error_severity) and dcgm_errors.h (severity 5).
"""

import json
import shutil
import subprocess

import output

_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_CONFIGURATION = 5


def parse(text):
    """Return the reading without its node, or None if the output is not JSON or no test ran."""
    start, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[start : end + 1])
    except ValueError:
        return None
    root = next((found[name] for name in _ROOTS if isinstance(found.get(name), dict)), found)
    ran, failed, configured = 0, [], 0
    for category in root.get("test_categories") or ():
        for test in filter(None, category.get("tests") or ()):
            results = [
                each
                for each in test.get("results") or ()
                if str(each.get("status", "")).lower() not in ("skip", "skipped", "not run")
            ]
            bad = [each for each in results if str(each["status"]).lower() == "fail"]
            ran += bool(results)
            configured += bool(bad) and all(map(is_configuration, bad))
            failed += [(test.get("name", "?"), each) for each in bad if not is_configuration(each)]
    if not ran:
        return None
    names = list(dict.fromkeys(name for name, _ in failed))
    why = f"{failed[0][0]} of GPU {whose(failed[0][1])}: {warning(failed[0][1])}" if failed else ""
    return {"tests": ran, "failed": len(names), "configuration": configured, "why": why[:300]}


def is_configuration(result):
    """Return whether all warnings of a result are about the node's configuration."""
    severities = [each.get("error_severity") for each in result.get("warnings") or () if isinstance(each, dict)]
    return bool(severities) and all(each == _CONFIGURATION for each in severities)


def whose(result):
    """Return the GPU of a result."""
    return result.get("entity_id", result.get("gpu_ids", "?"))


def warning(result):
    """Return the first warning of a result."""
    said_of_it = result.get("warnings") or result.get("info") or ["no reason given"]
    first = said_of_it[0] if isinstance(said_of_it, list) else said_of_it
    return " ".join(str(first.get("warning", first) if isinstance(first, dict) else first).split())


def main():
    """Measure this node."""
    _, tasks, node = output.place()
    asked = output.given({"level": 2})
    if tasks != 1:
        output.broken(f"it measures one node, and this step has {tasks} tasks")
    if not shutil.which("dcgmi"):
        output.broken("needs dcgmi of DCGM in the jail")
    words = ["dcgmi", "diag", "-r", str(asked["level"]), "-j"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = parse(done.stdout)
    if not found:
        output.broken(
            f"dcgmi ended with {done.returncode} and no result: {(done.stderr or done.stdout).strip()[-300:]}"
        )
    output.say([{"of": node, **found}])


if __name__ == "__main__":
    main()
