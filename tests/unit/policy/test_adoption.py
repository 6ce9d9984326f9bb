"""What a newer operator leaves alone, as a pure function over the notes of passes."""

from hypothesis import given
from hypothesis import strategies as st

from soperator.policy.cluster.render_record import RenderRecord, adopt

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["operator", "edit", "request", "pass", "lost note"]),
        st.integers(1, 3),
    ),
    max_size=30,
)


def wants(renderer, inputs):
    """What a version of the renderer makes of inputs; the object cares for the tens of the inputs only."""
    return f"{renderer}:{inputs // 10}"


@given(STEPS)
def test_an_object_changes_exactly_when_somebody_asked(steps):
    """Only an edit that concerns it, or a request, changes it, whichever versions of the operator come and go; and no such edit is left undone."""
    renderer, inputs, request = 1, 10, ""
    note, live, asked = None, wants(1, 10), True
    for what, value in [("pass", 0), *steps, ("pass", 0)]:
        match what:
            case "operator":
                renderer = value
            case "edit":
                asked = asked or inputs // 10 != value
                inputs = value * 10 + inputs % 10
            case "request":
                asked, request = True, f"{request}{value}"
            case "lost note":
                note, asked = None, True
            case "pass":
                now = RenderRecord(str(renderer), str(inputs), request, {"it": wants(renderer, inputs)})
                note = adopt(note, now, may=True)
                if live not in (now.wanted["it"], *note.same.get("it", ())):
                    assert asked, (live, now.wanted)
                    live = now.wanted["it"]
                assert live.endswith(f":{inputs // 10}"), "an edit was left undone"
                asked = False


def test_what_is_wanted_now_is_not_listed_as_of_former_times():
    """Going back to the former operator leaves a plain note."""
    first = adopt(None, RenderRecord("1", "i", "", {"it": "a"}), may=True)
    second = adopt(first, RenderRecord("2", "i", "", {"it": "b"}), may=True)
    assert second.same == {"it": ("a",)}
    assert adopt(second, RenderRecord("1", "i", "", {"it": "a"}), may=True).same == {"it": ("b",)}


def test_nothing_is_adopted_where_a_cluster_goes_with_its_operator():
    """Nor where another renderer makes another slurm.conf, which is a change of its own."""
    first = adopt(None, RenderRecord("1", "i", "", {"it": "a"}), may=True)
    now = RenderRecord("2", "i", "", {"it": "b"})
    assert adopt(first, now, may=False).same == {}
    assert adopt(first, now, may=True, may_begin=False).same == {}
