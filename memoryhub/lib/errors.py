"""The one base class of the errors that MemoryHub expects and explains."""

from __future__ import annotations


class MemoryHubError(Exception):
    """An anticipated error: pages, routes, tools and commands show it instead of a traceback.

    Subclasses are declared beside the code that raises them and carry a stable ``code``. The message is
    one plain sentence that says what to do; ``details`` are further values for machines.
    """

    code = "error"

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
