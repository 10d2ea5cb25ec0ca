"""The tables whose rows can be edited in bulk: their models and the names of their rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import Model
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, override

from knowledge_app.models import CachedResponse, Concern, Fact, HistoryEntry, KeyValue, KnowledgeEntry, Observation
from sessions_app.models import Run, Session


@dataclass(frozen=True)
class Table:
    """A table whose rows can be edited: its model, and the singular and plural names of its rows."""

    model: type[Model]
    many: Promise | str
    counted: Callable[[int], str]
    has_history: bool = True
    own_key: str = ""  # unique within a workspace, for tables whose rows are deleted
    is_dated: bool = True  # whether an edit sets the row's updated_at

    def count(self, number: int) -> str:
        """Return "3 facts" in English, for stored texts."""
        with override(None):
            return self.shown(number)

    def shown(self, number: int) -> str:
        """Return "3 facts" in the reader's language."""
        return self.counted(number) % {"count": f"{number:,}"}


CONCERNS = "concerns"
TABLES = {
    "knowledge": Table(
        KnowledgeEntry,
        _("knowledge entries"),
        lambda n: ngettext("%(count)s knowledge entry", "%(count)s knowledge entries", n),
    ),
    "observations": Table(
        Observation,
        _("observations"),
        lambda n: ngettext("%(count)s observation", "%(count)s observations", n),
    ),
    "key_values": Table(
        KeyValue,
        _("key-values"),
        lambda n: ngettext("%(count)s key-value", "%(count)s key-values", n),
    ),
    "cached": Table(
        CachedResponse,
        _("cached responses"),
        lambda n: ngettext("%(count)s cached response", "%(count)s cached responses", n),
        has_history=False,
        own_key="key",
    ),
    CONCERNS: Table(
        Concern,
        _("findings"),
        lambda n: ngettext("%(count)s finding", "%(count)s findings", n),
        has_history=False,
    ),
    "sessions": Table(
        Session,
        _("sessions"),
        lambda n: ngettext("%(count)s session", "%(count)s sessions", n),
        has_history=False,
        is_dated=False,
    ),
    "history": Table(
        HistoryEntry,
        _("history entries"),
        lambda n: ngettext("%(count)s history entry", "%(count)s history entries", n),
        has_history=False,
    ),
    "facts": Table(
        Fact,
        _("facts"),
        lambda n: ngettext("%(count)s fact", "%(count)s facts", n),
        has_history=False,
    ),
    "runs": Table(Run, _("runs"), lambda n: ngettext("%(count)s run", "%(count)s runs", n), has_history=False),
}
