"""Pages that are computed from more than the models have all that there is."""

from soperator.crdgen import labels as page_of_labels
from soperator.crdgen import slurm_settings
from soperator.render.parts import labels
from soperator.slurm.settings import managed


def test_every_label_and_annotation_is_on_the_page() -> None:
    """And nothing that no code writes any more."""
    written = {text for name, text in vars(labels).items() if name.isupper() and isinstance(text, str)}
    assert {each.key for each in page_of_labels.MARKS} == written - {labels.GROUP, labels.MANAGER, labels.APP_NAME}


def test_defaults_are_what_an_administrator_may_override() -> None:
    """No setting is called owned and a default."""
    found = {each.key for each in slurm_settings.defaults()}
    assert {"SlurmdTimeout", "MaxArraySize", "SelectTypeParameters"} <= found
    assert not found & {*managed.OWNED, *managed.SHARED, "NodeSet", "PartitionName"}


def test_every_owned_setting_is_on_the_page_with_its_remedy() -> None:
    """Whichever file it is of."""
    page = slurm_settings.page()
    for owned in (managed.OWNED, managed.ACCOUNTING, managed.TOPOLOGY, managed.OWNED_NODE, managed.OWNED_PARTITION):
        for key, remedy in owned.items():
            assert f"| `{key}` | {remedy} |" in page
