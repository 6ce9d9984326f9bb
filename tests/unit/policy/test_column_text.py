"""The text of a WHY column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.policy.column_text import LENGTH, in_column

PULL = (
    "2/3 workers ready: pod demo-fault-2: container jail waits, ImagePullBackOff of {image}: Back-off pulling image: ErrImagePull: failed to pull "
    "and unpack image: dial tcp 127.0.0.1:443: connect: connection refused; correct spec.image of NodeSet fault"
)
WAITS = "2/3 workers ready: pod demo-fault-2: container jail waits, ImagePullBackOff of"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", ""),
        ("login 0/1 ready: 1 pod is not created yet", "login 0/1 ready: 1 pod is not created yet"),
        ("a cause\n  on two lines", "a cause on two lines"),
        (PULL.format(image="localhost/nothing:1"), f"{WAITS} localhost/nothing:1 … connection refused"),
        (PULL.format(image="registry.example.org/team/slurm:1"), f"{WAITS} registry.example.org/… connection refused"),
        (f"{'a' * 70}; {'b' * 60}", f"{'a' * 70}; …"),
        (f"{'a' * 118}; b", "a" * 118),
        (f"it is being deleted; {'word ' * 40}", f"it is being deleted; {('word ' * 19).strip()} …"),
        (f"one; two; three; {'x' * 200}", f"one; two; three; {'x' * 102}…"),
        ("x" * 300, f"{'x' * 119}…"),
    ],
)
def test_the_first_cause_stands_in_the_column(message, expected):
    """A message that fits stays as it is; of a longer one the object and the first cause are left."""
    assert in_column(message) == expected
    assert len(expected) <= LENGTH


@given(st.text(alphabet="ab:; …\n", max_size=400))
def test_any_message_becomes_one_short_line(message):
    """Whatever a message is, the column has one line of at most LENGTH characters, which is empty only if the message is."""
    made = in_column(message)
    assert len(made) <= LENGTH
    assert "\n" not in made
    assert bool(made) == bool(message.strip())
