"""Commands on the database of another hub, in the tests' process: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from django.test import override_settings


@contextmanager
def other_hub(home: Path, database: str) -> Iterator[None]:
    """Use another database and home. Not for a test in a transaction, since the connection is closed."""
    connection.close()
    with pytest.MonkeyPatch.context() as patch, override_settings(MEMORYHUB_HOME=home):
        patch.setitem(connection.settings_dict, "NAME", database)
        patch.setattr(ContentType.objects, "_cache", {})
        try:
            yield
        finally:
            connection.close()


def manage(home: Path, database: str, *arguments: str) -> str:
    """Run a command and return what it prints."""
    with other_hub(home, database), redirect_stdout(StringIO()) as printed:
        call_command(*arguments)
    return printed.getvalue()
