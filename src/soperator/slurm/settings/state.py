"""The record of a change of Slurm's files. It is stored in the ConfigMap of the files, so that one write changes both."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class ConfigState:
    """The record in the annotations of the files' ConfigMap; times are in seconds since the epoch.

    `generation` is that of the files, `good` the last one that slurmctld ran with, `asked` the one that the operator requested it to load. `refused`
    is the generation that was rolled back, `refusal` the cause. `fixed` holds the settings that only a restart changes.
    """

    generation: str = ""
    good: str = ""
    since: float = 0.0
    asked: str = ""
    asked_at: float = 0.0
    tries: int = 0
    refused: str = ""
    refusal: str = ""
    fixed: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether slurmctld runs with the files, and the operator had requested it to load them."""
        return bool(self.good) and self.generation == self.good == self.asked

    def text(self) -> str:
        """Return the record as the text of the annotation."""
        return json.dumps({key: value for key, value in asdict(self).items() if value}, sort_keys=True)


def read_state(text: str) -> ConfigState:
    """Return the record that a text holds; an empty record if the text is invalid."""
    try:
        found = json.loads(text or "{}")
        return ConfigState(
            **{key: type(value)(found[key]) for key, value in asdict(ConfigState()).items() if key in found}
        )
    except (ValueError, TypeError):
        return ConfigState()
