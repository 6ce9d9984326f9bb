"""The page: what it shows, and that nothing which a user wrote is taken for HTML."""

from html.parser import HTMLParser

from soperator.agents.exporter.jobs import PendingJob
from soperator.agents.exporter.nodes import UnhealthyNode
from soperator.agents.exporter.page import DAY, STEP, History, page
from soperator.agents.exporter.refresh import ClusterView, Refresher, RefreshOptions
from soperator.slurmrest.reader import ListReader
from tests.unit.agents.exporter.test_refresh import Exporter

EVIL = "<script>alert('x')</script>\"&\n"


class Tags(HTMLParser):
    """The tags of a page, and what stands between them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


async def test_it_shows_what_was_read():
    """Counts of nodes and jobs, who needs a look and why, and who waits."""
    exporter = Exporter()
    await exporter.round()
    text = Tags(page(exporter.refresher, History())).text
    for part in (
        "demo",
        "Slurm 24.11.5",
        "2draining",
        "12 allocated",
        "gpu:h100",
        "gpu-xid: GPU 3 fell off the bus",
        "24pending",
        "alice",
        "Resources",
    ):
        assert part in text


async def test_it_is_there_before_slurm_answers_and_says_why_it_does_not():
    """A page of nothing, with the reason."""
    exporter = Exporter()
    assert "nothing is known yet" in page(exporter.refresher, History())
    exporter.slurm.is_well = False
    await exporter.round()
    assert "connection refused" in page(exporter.refresher, History())


def made(seen, **options):
    refresher = Refresher(ListReader("http://rest", lambda: ("", "")), RefreshOptions("demo", 1.0, **options))
    refresher.seen = seen
    return refresher


def test_what_users_wrote_is_text():
    """In reasons, accounts, partitions, features and states: no tag comes of it, and nothing is fetched from anywhere."""
    seen = ClusterView(
        EVIL,
        {EVIL: 1},
        {EVIL: {"allocated": 1}},
        {},
        [UnhealthyNode(EVIL, EVIL, EVIL, EVIL)],
        {EVIL: 2},
        [PendingJob(1, EVIL, EVIL, EVIL, EVIL, 0.0)],
    )
    found = Tags(page(made(seen), History()))
    assert "script" not in {tag for tag, _ in found.tags}
    assert EVIL.strip() in found.text
    assert not [attrs for _, attrs in found.tags if {"src", "href", "onclick"} & attrs.keys()]


def test_with_private_data_nobody_is_named():
    """The queue is counted, and not listed."""
    seen = ClusterView(jobs={"pending": 2}, waiting=[PendingJob(1, "alice", "ml", "main", "Resources", 0.0)])
    assert "alice" in page(made(seen), History())
    hidden = page(made(seen, private=True), History())
    assert "alice" not in hidden
    assert "pending" in hidden


def test_the_plot_is_of_the_last_day():
    """A point every five minutes, the oldest go; GPUs have a line where there are any."""
    history = History()
    seen = ClusterView(shares={"CPUs": {"allocated": 1, "idle": 3}})
    for number in range(3 * DAY):
        history.note(number * STEP / 2, seen)
    assert len(history.points) == DAY
    assert history.points[-1][1:] == (0.25, None)
    assert page(made(seen), history).count("<polyline") == 1
    history.note(1e6, ClusterView(shares={"CPUs": {"idle": 1}, "gpu:a": {"allocated": 1}, "gpu:b": {"idle": 1}}))
    assert history.points[-1][1:] == (0.0, 0.5)
    assert page(made(seen), history).count("<polyline") == 2


def test_a_thousand_bad_nodes_are_a_short_page():
    """A hundred are named, the others counted."""
    seen = ClusterView(unwell=[UnhealthyNode(f"w-{number}", "down", "Unchecked", "x") for number in range(1000)])
    html = page(made(seen), History())
    assert "And 900 more." in html
    assert len(html) < 30_000
