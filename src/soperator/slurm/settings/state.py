"""What is known of a change of Slurm's files. It stands beside the files, in the same object, and nowhere else."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class ConfigState:
    """What stands beside the files in their ConfigMap; times are in seconds since the epoch.

    `generation` are the files, `good` the last one that slurmctld ran with, `asked` the one that it was told to hand out. `refused` was taken
    back for what `refusal` says. `fixed` names the settings that only a restart changes.
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
        """Whether slurmctld runs with the files and was told to hand them out."""
        return bool(self.good) and self.generation == self.good == self.asked

    def text(self) -> str:
        """As it is written."""
        return json.dumps({key: value for key, value in asdict(self).items() if value}, sort_keys=True)


def read_state(text: str) -> ConfigState:
    """What was written; an empty one where it cannot be read, for then nothing is known."""
    try:
        found = json.loads(text or "{}")
        return ConfigState(
            **{key: type(value)(found[key]) for key, value in asdict(ConfigState()).items() if key in found}
        )
    except (ValueError, TypeError):
        return ConfigState()
