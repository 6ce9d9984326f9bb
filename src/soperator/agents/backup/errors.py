"""The failure of a step, with the message that ends the container."""


class BackupError(Exception):
    """A step failed; the text has the step, the cause and the remedy. `is_final` says that another attempt would also fail."""

    def __init__(self, text: str, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final
