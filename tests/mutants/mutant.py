"""One condition that is taken out."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """`text`, which stands once in `path`, becomes `instead`, and users would lose what `loses` says; one of `tests` has to fail then."""

    path: str
    text: str
    instead: str
    loses: str
    tests: tuple[str, ...]

    @property
    def is_c(self) -> bool:
        """Whether it is built before its tests, which are those of the jail."""
        return self.path.startswith("spank/")
