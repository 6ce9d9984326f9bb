"""The failure of a step, as the sentence that ends the container."""


class BackupError(Exception):
    """A step failed; the text says which, why, and what to do. `is_final` says that another attempt would not fare better."""

    def __init__(self, text: str, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final
