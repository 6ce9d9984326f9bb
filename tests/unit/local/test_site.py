"""The site: each page has one place, and what mkdocs gets says the same as the page in the repository."""

from collections import Counter
from pathlib import Path

import pytest

from local.site.__main__ import external_loads
from local.site.markdown import converted, relinked, targets
from local.site.navigation import Section, expanded, pages
from local.site.staging import place, stage

ROOT = Path(__file__).resolve().parents[3]


def test_the_navigation_names_every_page_of_docs_exactly_once():
    """A page that is missing gets its line in local/site/navigation.py, under the reader that it is for."""
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    named = Counter(pages(expanded(ROOT)))
    assert there - set(named) == set()
    assert [page for page, times in named.items() if times > 1] == []


def test_the_navigation_names_no_page_that_is_not_there():
    """An entry is a file of the repository."""
    assert [page for page in pages(expanded(ROOT)) if not (ROOT / page).is_file()] == []


def test_decisions_are_grouped_as_in_their_list():
    """A decision stands under the heading of the README, which keeps the order."""
    decisions = next(each for each in expanded(ROOT).entries if isinstance(each, Section) and each.title == "Decisions")
    groups = {each.title: each.entries for each in decisions.entries if isinstance(each, Section)}
    assert "docs/decisions/0011-dependencies.md" in groups["The operator and its API"]
    assert [each for each in decisions.entries if isinstance(each, str)] == ["docs/decisions/README.md"]


def test_a_pattern_takes_the_pages_that_no_other_entry_names(tmp_path):
    """In the order of the folder's README, then by name; a section without a page is left out."""
    (tmp_path / "docs").mkdir()
    for name in ("README", "a", "b", "c", "d"):
        (tmp_path / f"docs/{name}.md").write_text("[c](c.md) and [b](b.md)\n" if name == "README" else "")
    section = Section("", (Section("rest", ("docs/*.md",)), Section("none", ("absent/*.md",)), "docs/a.md"))
    names = ("README", "c", "b", "d")
    assert expanded(tmp_path, section) == Section(
        "", (Section("rest", tuple(f"docs/{each}.md" for each in names)), "docs/a.md")
    )


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("users.md", "users.md"),
        ("../start.md#3-create-a-user", "../start.md#3-create-a-user"),
        ("../../README.md#overview", "../index.md#overview"),
        ("../../CONTRIBUTING.md", "../contributing.md"),
        ("../../examples/cluster.yaml", "../files/examples/cluster.yaml.md"),
        ("../../spank/README.md", "../files/spank/README.md"),
        ("monitoring-page.png", "monitoring-page.png"),
        ("../../examples/picture.svg", "../files/examples/picture.svg"),
        ("#here", "#here"),
        ("https://kubernetes.io/docs", "https://kubernetes.io/docs"),
    ],
)
def test_a_link_leads_to_the_place_of_its_target_in_the_site(link, becomes):
    """Within docs/ nothing changes, and a file outside has a page of the site."""
    assert relinked(f"see [it]({link}).", "docs/howto/ssh.md", place) == f"see [it]({becomes})."


def test_code_is_no_link():
    """What stands in a fenced block is left as it is, and is no target."""
    text = "```sh\necho [a](../../x)\n```\n[b](b.md)"
    assert relinked(text, "docs/howto/ssh.md", place) == text
    assert targets(text, "docs/howto/ssh.md") == ["docs/howto/b.md"]


def test_contents_of_a_list_have_four_spaces_for_each_level():
    """Two or three are enough where the repository is shown, and are outside the item for Python-Markdown."""
    text = "1. one\n   more\n\n   ```yaml\n   a:\n     - b\n   ```\n\n2. two\n   - inner\n     tail\n\nafter"
    expected = (
        "1. one\n    more\n\n    ```yaml\n    a:\n      - b\n    ```\n\n2. two\n    - inner\n        tail\n\nafter\n"
    )
    assert converted(text) == expected


def test_a_block_of_code_is_not_taken_for_a_list():
    """Its lines stay as they are, whatever they begin with."""
    text = "```yaml\na:\n- b\n  - c\n| d\n```\n"
    assert converted(text) == text


def test_a_list_and_a_table_after_a_paragraph_get_an_empty_line():
    """Without it Python-Markdown would go on with the paragraph."""
    assert converted("so:\n- a\n- b") == "so:\n\n- a\n- b\n"
    assert converted("so:\n| a |\n|---|") == "so:\n\n| a |\n|---|\n"


def test_a_callout_becomes_an_admonition():
    """Danger stays visible in the site."""
    assert converted("a\n\n> [!WARNING]\n> Jobs end.\n\nb") == "a\n\n\n!!! warning\n\n    Jobs end.\n\nb\n"


def test_the_readme_is_the_first_page_without_the_list_of_pages_at_its_side(tmp_path):
    """Its room goes to the diagram and the tables."""
    (tmp_path / "README.md").write_text("# Title\n")
    stage(tmp_path, Section("", ("README.md",)), tmp_path / "site")
    assert (tmp_path / "site/index.md").read_text() == "---\nhide: [navigation]\n---\n\n# Title\n"


def test_a_file_outside_docs_is_shown_on_a_page_and_lies_beside_it(tmp_path):
    """An example can be read in the site, and fetched from it."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("[it](../examples/x.yaml), [all](../examples)\n")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/x.yaml").write_text("kind: X\n")
    stage(tmp_path, Section("", ("docs/a.md",)), tmp_path / "site")
    assert (tmp_path / "site/a.md").read_text() == "[it](files/examples/x.yaml.md), [all](files/examples.md)\n"
    assert "`````yaml\nkind: X\n`````" in (tmp_path / "site/files/examples/x.yaml.md").read_text()
    assert (tmp_path / "site/files/examples/x.yaml").read_text() == "kind: X\n"
    assert "- [x.yaml](examples/x.yaml.md)" in (tmp_path / "site/files/examples.md").read_text()


def test_each_file_of_a_folder_has_a_page(tmp_path):
    """A page that names a folder of examples leads to what is in it; what git ignores and what is no text is not shown."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("[all](../examples/)\n")
    (tmp_path / "examples/__pycache__").mkdir(parents=True)
    (tmp_path / "examples/run.sh").write_text("exit 0")
    (tmp_path / "examples/data").write_bytes(b"\xff\xfe")
    (tmp_path / "examples/.env").touch()
    stage(tmp_path, Section("", ("docs/a.md",)), tmp_path / "site")
    listed = [path.name for path in sorted((tmp_path / "site/files/examples").iterdir())]
    assert listed == ["data", "data.md", "run.sh", "run.sh.md"]
    assert "`````bash\nexit 0\n`````" in (tmp_path / "site/files/examples/run.sh.md").read_text()
    assert "`````" not in (tmp_path / "site/files/examples/data.md").read_text()


@pytest.mark.parametrize("link", ["../../secret.txt", "/etc/hosts", "absent.md"])
def test_a_link_out_of_the_repository_fails(tmp_path, link):
    """No file of the machine that builds the site gets into it."""
    (tmp_path / "tree/docs").mkdir(parents=True)
    (tmp_path / "secret.txt").touch()
    (tmp_path / "tree/docs/a.md").write_text(f"[it]({link})\n")
    with pytest.raises(ValueError, match=r"docs/a\.md links to .*, which is not in the repository"):
        stage(tmp_path / "tree", Section("", ("docs/a.md",)), tmp_path / "site")


def test_a_link_to_a_folder_of_docs_needs_its_readme(tmp_path):
    """The error names the page and the folder."""
    (tmp_path / "docs/b").mkdir(parents=True)
    (tmp_path / "docs/a.md").write_text("[it](b/)\n")
    with pytest.raises(ValueError, match=r"docs/a\.md links to docs/b, a folder without a README\.md"):
        stage(tmp_path, Section("", ("docs/a.md",)), tmp_path / "site")
    (tmp_path / "docs/b/README.md").touch()
    stage(tmp_path, Section("", ("docs/a.md",)), tmp_path / "site")
    assert (tmp_path / "site/a.md").read_text() == "[it](b/README.md)\n"


def test_what_a_page_loads_from_another_host_is_found(tmp_path):
    """Scripts, styles, fonts and images count; a link that a reader may follow does not."""
    (tmp_path / "a.html").write_text(
        '<a href="https://b.example">b</a><script defer src="https://cdn.example/x.js"></script>'
        '<link rel="icon" href="assets/i.png"><link href="//fonts.example/f.css" rel="stylesheet">'
    )
    (tmp_path / "s.css").write_text(
        "@font-face { src: url(https://fonts.example/f.woff2) } a { background: url(data:x) }"
    )
    (tmp_path / "m.html").write_text('<pre class="mermaid">')
    assert len(external_loads(tmp_path)) == 4
