"""Assigns each page of docs/ to one place in the navigation.

An entry is the path of a page in the repository, or a pattern, which matches the pages in its folder that no other entry names. The pages
of a folder are in the order of the links in its README.md, and then sorted by name.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

LINK = re.compile(r"\]\(([^)\s#]+)")
ITEM = re.compile(r"^- \[[^]]*\]\(([^)\s#]+)\)")


@dataclass(frozen=True)
class Section:
    """A title and its entries: paths, patterns, and sections.

    `grouped`: the pages of a pattern become one section for each heading of their folder's README.md.
    """

    title: str
    entries: "tuple[str | Section, ...]"
    grouped: bool = False


def _pages(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}.md" for name in names)


def _howto(*names: str) -> tuple[str, ...]:
    return _pages("docs/howto", *names)


USE = Section("Use the cluster", ("docs/use/*.md", *_howto("containers")))
RUN = Section(
    "Run it",
    (
        "docs/howto/README.md",
        Section(
            "Install",
            (
                "docs/start.md",
                *_howto(
                    "move-in",
                    "command-line",
                    "publish-charts",
                    "infrastructure-as-code",
                    "upgrade",
                    "security-updates",
                    "uninstall",
                ),
            ),
        ),
        Section("Users", _howto("users", "ssh", "directory", "rest")),
        Section(
            "Storage and the jail",
            _howto(
                "storage",
                "submounts",
                "a-root-for-each-node",
                "install-software-in-the-jail",
                "another-jail-image",
                "upgrade-the-jail",
                "repair-the-jail",
            ),
        ),
        Section("Health", _howto("health-checks", "write-a-check", "deep-checks", "fault-lab")),
        Section(
            "Observe",
            (*_howto("monitoring", "job-usage", "logs"), "docs/runbooks/operator.md", "docs/runbooks/slurm.md"),
        ),
        "docs/howto/troubleshoot.md",
    ),
)
SLURM = Section(
    "Slurm administrators",
    _howto("change-slurm-conf", "accounting", "accounts", "limit-jobs", "mixed", "use-gpus-and-rdma", "outside-hosts"),
)
KUBERNETES = Section(
    "Kubernetes administrators",
    _howto(
        "size",
        "scale-and-roll",
        "on-demand",
        "pod-template",
        "empty-a-node",
        "give-way",
        "availability",
        "rotate-keys",
        "back-up-and-restore",
    ),
)
REFERENCE = Section(
    "Reference",
    (
        "docs/reference/README.md",
        Section("Kinds", ("docs/reference/slurm*.md", "docs/reference/nodeset.md", "docs/reference/healthcheck.md")),
        "docs/reference/slurm-settings.md",
        "docs/reference/*.md",
    ),
)
EXPLAIN = Section(
    "Explain",
    (
        "docs/explain/architecture.md",
        "docs/explain/*.md",
        "spank/README.md",
        "docs/performance.md",
        "docs/reliability.md",
    ),
)
DECISIONS = Section("Decisions", ("docs/decisions/README.md", "docs/decisions/*.md"), grouped=True)
REPORTS = Section(
    "Reports",
    (
        Section("Attacks", ("docs/reports/attack-*.md",)),
        Section(
            "Faults and changes",
            _pages(
                "docs/reports", "faults", "kills", "changes", "bad-machines", "deep-checks", "upgrade", "cluster-tests"
            ),
        ),
        Section("Costs and other reports", ("docs/reports/*.md",)),
    ),
)
CONTRIBUTE = Section(
    "Contribute",
    (
        "CONTRIBUTING.md",
        "docs/howto/release.md",
        "docs/roadmap.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "MAINTAINERS.md",
        "CODE_OF_CONDUCT.md",
    ),
)
NAVIGATION = Section(
    "",
    (
        "README.md",
        USE,
        RUN,
        SLURM,
        KUBERNETES,
        REFERENCE,
        EXPLAIN,
        DECISIONS,
        REPORTS,
        CONTRIBUTE,
    ),
)


def expanded(root: Path, section: Section = NAVIGATION) -> Section:
    """Return the section with each pattern replaced by the pages that it matches."""
    named = {entry for entry in _entries(section) if "*" not in entry}
    return _expanded(root, section, named)


def pages(section: Section) -> Iterator[str]:
    """Yield each page of an expanded section, in order."""
    return _entries(section)


def _entries(section: Section) -> Iterator[str]:
    for entry in section.entries:
        if isinstance(entry, Section):
            yield from _entries(entry)
        else:
            yield entry


def _expanded(root: Path, section: Section, taken: set[str]) -> Section:
    """Expand one section; later patterns do not match a page that a pattern has already matched."""
    entries: list[str | Section] = []
    for entry in section.entries:
        if isinstance(entry, Section):
            inner = _expanded(root, entry, taken)
            entries += [inner] if inner.entries else []
        elif "*" in entry:
            folder = str(PurePosixPath(entry).parent)
            found = [page for page in _in_order(root, folder) if fnmatchcase(page, entry) and page not in taken]
            entries += _by_heading(root, folder, found) if section.grouped else found
            taken.update(found)
        else:
            entries.append(entry)
    return Section(section.title, tuple(entries))


def _in_order(root: Path, folder: str) -> list[str]:
    """Return the pages of a folder: its README, then the pages that it links to, then the others."""
    there = sorted(f"{folder}/{path.name}" for path in (root / folder).glob("*.md"))
    readme = f"{folder}/README.md"
    linked = [f"{folder}/{link}" for link in LINK.findall((root / readme).read_text())] if readme in there else []
    order = {page: rank for rank, page in reversed(list(enumerate([readme, *linked])))}
    return sorted(there, key=lambda page: (order.get(page, len(order)), page))


def _by_heading(root: Path, folder: str, found: list[str]) -> list[str | Section]:
    """Group pages by the heading of the folder's README.md that lists them; a page that it does not list stays outside the groups."""
    groups: dict[str, list[str]] = {}
    heading = ""
    for line in (root / folder / "README.md").read_text().splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif item := ITEM.match(line):
            groups.setdefault(heading, []).append(f"{folder}/{item[1]}")
    sections = [Section(title, tuple(page for page in pages if page in found)) for title, pages in groups.items()]
    listed = {page for section in sections for page in section.entries}
    return [*(section for section in sections if section.entries), *(page for page in found if page not in listed)]
