"""Short functions that back up databases, restore them, and read their contents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from django.conf import settings as hub
from django.db import connection

from memoryhub.backups import postgres, sqlite
from memoryhub.backups.archive import manifest_mac
from memoryhub.backups.create import create_backup
from memoryhub.backups.kept_revocations import kept_file
from memoryhub.backups.restore import restore_backup
from tests.hub import NOW
from tests.other_hub import manage, other_hub

ON_POSTGRES = bool(hub.DATABASES["default"]["ENGINE"].endswith("postgresql"))
KEY = "a calm sea at dawn"


def restore(made, elsewhere, *, replace=False, accept_unapplied=False):
    return restore_backup(made.file, database=elsewhere, replace=replace, now=NOW, accept_unapplied=accept_unapplied)


def contents(database):
    return postgres.contents(database) if ON_POSTGRES else sqlite.contents(Path(database.settings_dict["NAME"]))


def back_up(place, now=NOW):
    return create_backup(place, database=connection, clock=lambda: now)


def signed(manifest):
    """Return a changed manifest with a valid MAC, as if another version of the hub had created it."""
    return replace(manifest, mac=manifest_mac(manifest))


class Hub:
    """The database ``elsewhere``, with short ways to work in it."""

    def __init__(self, database, home):
        self.database, self.home = database, home
        self.name = str(database.settings_dict["NAME"])

    def restore(self, made) -> str:
        return manage(self.home, self.name, "restore", str(made.file), "--yes")

    def use(self):
        return other_hub(self.home, self.name)

    @property
    def kept(self):
        return kept_file(self.database, self.home if ON_POSTGRES else self.home.parent)
