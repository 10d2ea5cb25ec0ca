"""The kinds of rows that can be searched: their tables, text columns and filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, Model, Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from knowledge_app.models import (
    CachedResponse,
    Fact,
    FactSource,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryRevision,
    Observation,
)
from memoryhub.lib.database.any_case import any_case, in_json
from sessions_app.models import Entry, Session, Summary
from sessions_app.querysets import IN_CONVERSATION

Narrow = Callable[[str], Q]


@dataclass(frozen=True)
class Kind:
    """One kind of row.

    ``texts``: columns to search and show; ``metas``: further columns to search. ``time`` and ``workspace``: lookups
    of the time to order by and of the workspace. ``fields``: filters by value; ``traits``: values of ``has:``.
    ``live``: the condition on rows unless withdrawn ones are asked for. ``always``: a condition on rows that the
    index also has.
    """

    name: str
    one: Promise | str
    many: Promise | str
    icon: str
    model: type[Model]
    texts: tuple[str, ...]
    metas: tuple[str, ...] = ()
    author: str = ""
    time: str = ""
    session: str = ""
    live: Q = field(default_factory=Q)
    always: Q = field(default_factory=Q)
    withdrawn: Q | None = None
    fields: Mapping[str, Narrow] = field(default_factory=dict)
    traits: Mapping[str, Q] = field(default_factory=dict)
    facets: Mapping[str, str] = field(default_factory=dict)
    workspace: str = "workspace"
    related: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()  # large columns of related rows
    hidden_by: Mapping[str, str] = field(
        default_factory=dict
    )  # columns that are hidden where a flag is set, as in the index
    edited_as: str = ""  # the table's name in bulk edits

    @property
    def table(self) -> str:
        return self.model._meta.db_table

    def rows(self, workspaces: list[int] | None) -> QuerySet[Any]:
        """Return the rows of the given workspaces, or of all if None."""
        found = self.model._default_manager.filter(self.always)
        return found if workspaces is None else found.filter(**{f"{self.workspace}__in": workspaces})


def _is(lookup: str) -> Narrow:
    return lambda value: any_case(f"{lookup}__iexact", value)


def _holds(lookup: str) -> Narrow:
    return lambda value: any_case(f"{lookup}__icontains", value)


def _lists(lookup: str) -> Narrow:
    return lambda value: in_json(lookup, value)


def _session(prefix: str = "session__") -> Narrow:
    """Match a session by its key, the part of the key after the channel, or its title."""
    return lambda value: (
        any_case(f"{prefix}key__iexact", value)
        | any_case(f"{prefix}key__iendswith", f":{value}")
        | any_case(f"{prefix}title__iexact", value)
    )


def _author(value: str) -> Q:
    return any_case("name__iexact", value) | (any_case("role__iexact", value) & Q(name=""))


def _tool(value: str) -> Q:
    is_result = Q(kind=Entry.Kind.TOOL_RESULT)
    return (is_result & any_case("name__iexact", value)) | any_case("tool_calls__icontains", value)


LIVING, WITHDRAWN = Q(withdrawn_at=None), Q(withdrawn_at__isnull=False)
ENTRY = Kind(
    "entry",
    _("message"),
    _("messages"),
    "sessions",
    Entry,
    texts=("content", "tool_calls"),
    metas=("name",),
    author="name",
    time="occurred_at",
    session="session",
    always=IN_CONVERSATION,
    fields={
        "session": _session(),
        "channel": _is("session__channel"),
        "role": _is("role"),
        "author": _author,
        "tool": _tool,
    },
    traits={
        "tool": ~Q(tool_calls=[]),
        "summary": Q(summary__isnull=False),
        "time": Q(occurred_at__isnull=False),
        "session": Q(),
    },
    facets={"session": "session__key", "channel": "session__channel", "author": "name", "role": "role"},
    related=("session", "workspace"),
)
KINDS = {
    kind.name: kind
    for kind in (
        ENTRY,
        Kind(
            "summary",
            _("summary"),
            _("summaries"),
            "fold",
            Summary,
            texts=("content",),
            time="ends_at",
            session="session",
            fields={"session": _session(), "channel": _is("session__channel")},
            traits={"time": Q(ends_at__isnull=False), "session": Q()},
            facets={"session": "session__key", "channel": "session__channel"},
            related=("session", "workspace"),
        ),
        Kind(
            "memory",
            _("memory line"),
            _("memory lines"),
            "memory",
            Fact,
            texts=("text",),
            metas=("section", "category"),
            time="born__created_at",
            live=Q(died=None),
            withdrawn=Q(died__isnull=False),
            fields={"category": _is("category"), "source": _is("document__name")},
            traits={
                "source": Q(pk__in=FactSource.objects.values("fact")),
                "pin": Q(pinned=True),
                "review": Q(review_by__isnull=False),
                "time": Q(),
            },
            facets={"category": "category"},
            related=("document", "workspace", "born", "corrected", "accepted__proposal"),
            deferred=(
                *(
                    f"{revision}__{text}"
                    for revision in ("born", "corrected", "accepted")
                    for text in ("content", "raw")
                ),
                "accepted__proposal__proposed",
                "accepted__proposal__raw",
            ),
            edited_as="facts",
        ),
        Kind(
            "document",
            _("document"),
            _("documents"),
            "memory",
            MemoryRevision,
            texts=("content",),
            time="created_at",
            live=Q(pk=F("document__head")),
            withdrawn=~Q(pk=F("document__head")),
            fields={"source": _is("document__name")},
            traits={"time": Q()},
            workspace="document__workspace",
            related=("document", "document__workspace"),
        ),
        Kind(
            "history",
            _("history entry"),
            _("history entries"),
            "history",
            HistoryEntry,
            texts=("content",),
            time="occurred_at",
            session="session",
            live=LIVING,
            withdrawn=WITHDRAWN,
            fields={"session": _session(), "channel": _is("session__channel"), "source": _holds("source")},
            traits={
                "time": Q(occurred_at__isnull=False),
                "session": Q(session__isnull=False),
                "source": ~Q(source=""),
            },
            facets={"session": "session__key", "channel": "session__channel"},
            related=("session", "workspace", "hold"),
            edited_as="history",
        ),
        Kind(
            "knowledge",
            _("knowledge entry"),
            _("knowledge entries"),
            "knowledge",
            KnowledgeEntry,
            texts=("content",),
            metas=("category", "source", "tags"),
            time="created_at",
            live=LIVING,
            withdrawn=WITHDRAWN,
            fields={"category": _is("category"), "tag": _lists("tags"), "source": _holds("source")},
            traits={
                "tags": ~Q(tags=[]),
                "source": ~Q(source=""),
                "time": Q(created_at__isnull=False),
                "review": Q(review_by__isnull=False),
            },
            facets={"category": "category"},
            related=("workspace", "hold"),
            edited_as="knowledge",
        ),
        Kind(
            "observation",
            _("observation"),
            _("observations"),
            "observations",
            Observation,
            texts=("content",),
            metas=("category", "source"),
            time="occurred_at",
            live=LIVING,
            withdrawn=WITHDRAWN,
            fields={"category": _is("category"), "source": _holds("source")},
            traits={
                "source": ~Q(source=""),
                "time": Q(occurred_at__isnull=False),
                "review": Q(review_by__isnull=False),
            },
            facets={"category": "category"},
            related=("workspace", "hold"),
            edited_as="observations",
        ),
        Kind(
            "key_value",
            _("key-value"),
            _("key-values"),
            "keyvalues",
            KeyValue,
            texts=("key", "value"),
            time="updated_at",
            live=LIVING,
            withdrawn=WITHDRAWN,
            traits={"time": Q()},
            related=("workspace", "hold"),
            hidden_by={"value": "is_secret"},
            edited_as="key_values",
        ),
        Kind(
            "session",
            _("conversation"),
            _("conversations"),
            "sessions",
            Session,
            texts=("title", "key", "summary_text", "note"),
            time="updated_at",
            fields={"session": _session(""), "channel": _is("channel")},
            traits={"time": Q(), "session": Q(), "summary": ~Q(summary_text="")},
            facets={"channel": "channel"},
            related=("workspace",),
            edited_as="sessions",
        ),
        Kind(
            "cached",
            _("cached response"),
            _("cached responses"),
            "cache",
            CachedResponse,
            texts=("preview", "response"),
            metas=("model",),
            time="created_at",
            traits={"time": Q(created_at__isnull=False)},
            related=("workspace",),
            edited_as="cached",
        ),
    )
}
ENTRY_KINDS = tuple(Entry.Kind.values)
