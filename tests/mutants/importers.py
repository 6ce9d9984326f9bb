"""Conditions of the importers (src/soperator/importers), without which a setting or a password goes where it must not."""

from tests.mutants.mutant import Mutant

D, T = "src/soperator/importers", "tests/unit/importers/test_slurm_conf.py"
N = "tests/unit/importers/test_nebius.py"
S = "tests/unit/importers/test_slinky.py"

IMPORTERS = [
    Mutant(
        f"{D}/slurm_conf/files.py",
        "        if next(count) > MOST_INCLUDES:\n",
        "        if False:\n",
        "the import, to 24 files that each include the next one twice",
        ("tests/unit/cli/test_import.py",),
    ),
    Mutant(
        "src/soperator/cli/support/manifests.py",
        "        if _size(node, sizes) > len(sizes) + _MOST_REPEATED:\n",
        "        if False:\n",
        "all memory, to a file of YAML whose aliases repeat each other",
        ("tests/unit/cli/test_import.py",),
    ),
    Mutant(
        f"{D}/slurm_conf/partitions.py",
        "if not reason and nodes is not None and not nodes:",
        "if False:",
        "the limits of a partition without nodes, which then has all of them",
        (T,),
    ),
    Mutant(
        f"{D}/slurm_conf/nodes.py",
        "groups.setdefault((shape, tuple(sorted(membership.get(name, ())))), []).append(name)",
        "groups.setdefault((shape, ()), []).append(name)",
        "nodes of one partition to the users of another",
        (T,),
    ),
    Mutant(
        f"{D}/parts/free_settings.py",
        'return f"{key}=(hidden)" if _SECRET.search(key) else',
        "return",
        "a password, which a report has",
        (T,),
    ),
    Mutant(
        f"{D}/nebius/nodesets.py",
        "    fields.rest(reasons.NODESET)\n",
        "",
        "fields of a newer release, of which nobody hears",
        (N,),
    ),
    Mutant(
        f"{D}/parts/fields.py",
        "if any(path[: len(each)] == each for each in self.taken):",
        "if any(path[:2] == each[:2] for each in self.taken):",
        "a field beside one that was taken, of which nobody hears",
        (N,),
    ),
    Mutant(
        f"{D}/nebius/partitions.py",
        "    return whole if names and names == set().union(*(nodes[name] for name in whole)) else None",
        "    return whole",
        "nodes to a partition that had a part of them",
        (N,),
    ),
    Mutant(
        f"{D}/slurm_conf/settings.py",
        "        if each.line.rest:\n            report.left(each.place, each.line.rest[:120]",
        "        if False:\n            report.left(each.place, each.line.rest[:120]",
        "a line that Slurm cannot read, of which nobody hears",
        (T,),
    ),
    Mutant(
        f"{D}/slinky/partitions.py",
        'unknown = [] if nodes else ["none"]',
        "unknown: list[str] = []",
        "all nodes to a partition that had none",
        (S,),
    ),
    Mutant(
        f"{D}/slinky/partitions.py",
        "    said = {**defaults, **said}\n",
        "",
        "the groups that PartitionName=DEFAULT kept out",
        (S,),
    ),
    Mutant(
        f"{D}/slinky/whole.py",
        "names[old] = new",
        "names[new] = new",
        "nodes of one partition to the users of another",
        (S,),
    ),
    Mutant(
        f"{D}/slinky/whole.py",
        "        fields.rest(reasons.NODESET)\n",
        "",
        "fields of a newer release, of which nobody hears",
        (S,),
    ),
    Mutant(
        f"{D}/slinky/whole.py",
        '    if not spec["partitions"]:',
        "    if False:",
        "all nodes to everybody, of which nobody hears",
        (S,),
    ),
    Mutant(
        f"{D}/slinky/services.py",
        "if user in ADMINISTRATORS or not user:",
        "if not user:",
        "a token with all rights, which a Secret has",
        (S,),
    ),
    Mutant(
        f"{D}/slinky/pods.py",
        "if path in RESERVED_PATHS or re.search(RESERVED, path):",
        "if False:",
        "a volume over the operator's own mounts",
        (S,),
    ),
    Mutant(
        f"{D}/parts/submounts.py",
        'if claim.get("readOnly"):',
        "if False:",
        "writes to a file system that was read-only",
        (S,),
    ),
]
