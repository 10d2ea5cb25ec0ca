"""Completions for a query being typed: fields, fixed values, and values from rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo

from django.db import connection
from django.db.models import Q, QuerySet

from knowledge_app.models import Fact, HistoryEntry, KnowledgeEntry, MemoryDocument, Observation
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.masked_text import has_secrets, masked
from memoryhub.lib.search.matching import SearchTooSlow, time_limit
from memoryhub.lib.search.query_tokens import clean_query, quote_value
from memoryhub.lib.search.tokenizing import fold
from memoryhub.search.completion_request import CompletionRequest, complete_names, complete_values, completion_at
from memoryhub.search.filters import Scope
from sessions_app.models import Entry, Session

MOST = 10
LOOKED_AT = 10_000  # newest entries to take values from; a fifth of that in other tables
MILLISECONDS = 100
MAX_VALUE = 200  # characters
Values = list[tuple[str, str]]  # value, description


@dataclass(frozen=True)
class Offer:
    """A completion: its label and purpose, the query with it applied, and the cursor after it."""

    label: str
    purpose: str
    text: str
    cursor: int


def offers(scope: Scope, text: str, cursor: int, *, now: datetime, zone: tzinfo) -> list[Offer]:
    """Return at most ten completions at the cursor (in characters); row values come from the scope only."""
    request = completion_at(text, cursor)
    if request.what == "name":
        found = [(name, purpose, name) for name, purpose in complete_names(request.prefix)]
    elif request.what == "value":
        fixed = complete_values(request.field, request.prefix, now=now, zone=zone, typed=request.typed)
        values = fixed or _values(scope, request)
        found = [(value, purpose, f"{quote_value(value)} ") for value, purpose in values]
    else:
        return []
    return [_offer(text, request, *one) for one in found[:MOST]]


def _offer(text: str, request: CompletionRequest, label: str, purpose: str, inserted: str) -> Offer:
    used = clean_query(text)
    rest = used[request.end :]
    put = inserted.rstrip() if rest.startswith((",", " ")) else inserted
    return Offer(label, purpose, f"{used[: request.start]}{put}{rest}", request.start + len(put))


def _values(scope: Scope, request: CompletionRequest) -> Values:
    """Return values of a field with the typed prefix, commonest or latest first; none on a timeout."""
    look = LOOKUPS.get(request.field)
    if look is None:
        return []
    known = {fold(value) for value in request.typed}
    try:
        with time_limit(connection, MILLISECONDS):
            found = look(scope, request.prefix)
    except SearchTooSlow:
        return []
    fits = [(value, purpose) for value, purpose in found if len(value) <= MAX_VALUE and fold(value) not in known]
    return [(value, masked(str(purpose))) for value, purpose in fits if not has_secrets(value)]


def _within_scope(rows: QuerySet, scope: Scope) -> QuerySet:  # type: ignore[type-arg]
    return rows if scope.workspaces is None else rows.filter(workspace__in=scope.workspaces)


def _sessions(scope: Scope, prefix: str) -> Values:
    rows = _within_scope(Session.objects.all(), scope)
    fits = any_case("key__istartswith", prefix) | any_case("key__icontains", f":{prefix}")
    fits |= any_case("title__istartswith", prefix)
    found = rows.filter(fits).order_by("-updated_at", "-pk").values_list("key", "title")[: MOST * 2]
    return list(dict(found).items())


def _counted(values: Iterable[str], prefix: str) -> Values:
    begun = fold(prefix)
    counts = Counter(value for value in values if value and fold(value).startswith(begun))
    return [(value, "") for value, _ in counts.most_common(MOST)]


def _latest(rows: QuerySet, scope: Scope, column: str, count: int) -> list[str]:  # type: ignore[type-arg]
    return list(_within_scope(rows, scope).order_by("-pk").values_list(column, flat=True)[:count])


def _of_entries(column: str, condition: Q) -> Callable[[Scope, str], Values]:
    """Return a lookup of a column in the newest entries."""

    def look(scope: Scope, prefix: str) -> Values:
        return _counted(_latest(Entry.objects.in_conversation().filter(condition), scope, column, LOOKED_AT), prefix)

    return look


def _channels(scope: Scope, prefix: str) -> Values:
    return _counted(_latest(Session.objects.all(), scope, "channel", LOOKED_AT // 5), prefix)


def _categories(scope: Scope, prefix: str) -> Values:
    found: list[str] = []
    for model in (KnowledgeEntry, Observation, Fact):
        found += _within_scope(model.objects.all(), scope).order_by().values_list("category", flat=True).distinct()
    return _counted(found, prefix)


def _tags(scope: Scope, prefix: str) -> Values:
    lists = _latest(KnowledgeEntry.objects.exclude(tags=[]), scope, "tags", LOOKED_AT // 5)
    return _counted((str(tag) for tags in lists for tag in tags), prefix)


def _sources(scope: Scope, prefix: str) -> Values:
    found: list[str] = []
    for model in (KnowledgeEntry, Observation, HistoryEntry):
        found += _latest(model.objects.exclude(source=""), scope, "source", LOOKED_AT // 5)
    found += _latest(MemoryDocument.objects.all(), scope, "name", MOST * 5)
    return _counted(found, prefix)


LOOKUPS: dict[str, Callable[[Scope, str], Values]] = {
    "session": _sessions,
    "channel": _channels,
    "role": _of_entries("role", Q()),
    "author": _of_entries("name", ~Q(name="") & ~Q(kind=Entry.Kind.TOOL_RESULT)),
    "tool": _of_entries("name", Q(kind=Entry.Kind.TOOL_RESULT)),
    "category": _categories,
    "tag": _tags,
    "source": _sources,
}
