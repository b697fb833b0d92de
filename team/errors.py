"""The one kind of error that a user sees: a sentence that names the thing, and the remedy. The CLI exits 2 with it."""


class UserError(Exception):
    """Something the user can mend. ``what`` is one clear sentence, ``remedy`` the next thing to type or change."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what} {remedy}")
        self.what = what
        self.remedy = remedy
