"""Load rows as the reranker's candidates: text up to a limit, author, time and position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import F, Q, TextField
from django.db.models.functions import Substr

from memoryhub.lib.search.neighbour_smoothing import EntryPosition
from memoryhub.lib.search.scoring import Candidate
from memoryhub.lib.text.facts import fact_lines
from memoryhub.search.filters import FilteredKind
from memoryhub.search.kinds import Kind

SCORED_CHARS = 20_000  # of each text; the index covers more and selects the rows


def load_candidates(kind: Kind, pks: Sequence[int]) -> list[Candidate]:
    """Return rows of a kind as candidates, in the given order; one query."""
    rows = kind.model._default_manager.filter(pk__in=pks)
    found = {one.pk: one for one in _candidates(kind, rows)}
    return [found[pk] for pk in pks if pk in found]


def load_neighbours(filtered: FilteredKind, positions: Iterable[EntryPosition]) -> list[Candidate]:
    """Return the entries at the given positions that pass the filters, as candidates; two queries.

    Keys are fetched first: with a workspace condition in the same query, SQLite would scan the whole workspace.
    """
    by_epoch: dict[tuple[int, int], list[int]] = {}
    for session, epoch, position in positions:
        by_epoch.setdefault((session, epoch), []).append(position)
    condition = Q(pk__in=[])
    for (session, epoch), numbers in by_epoch.items():
        condition |= Q(session=session, epoch=epoch, position__in=numbers)
    keys = list(filtered.kind.model._default_manager.filter(condition).values_list("pk", flat=True))
    return list(_candidates(filtered.kind, filtered.rows.filter(pk__in=keys))) if keys else []


def _candidates(kind: Kind, rows: Any) -> Iterable[Candidate]:
    names = [*kind.texts, *kind.metas]
    columns = {f"searched_{name}": Substr(name, 1, SCORED_CHARS, output_field=TextField()) for name in names}
    flags = list(kind.hidden_by.values())
    entry_columns = ["session_id", "epoch", "position", "role"] if kind.name == "entry" else []
    time = {"searched_at": F(kind.time)} if kind.time else {}
    for row in rows.annotate(**columns, **time).values("pk", *columns, *time, *flags, *entry_columns):
        texts = [row[f"searched_{name}"] for name in kind.texts if not row.get(kind.hidden_by.get(name, ""))]
        if kind.name == "document":
            texts = [prose_of(text) for text in texts]
        yield Candidate(
            row["pk"],
            "\n".join(text for text in texts if text and text != "[]"),
            meta="\n".join([*(row[f"searched_{name}"] for name in kind.metas), date_words(row.get("searched_at"))]),
            author=row["searched_name"] if kind.author else "",
            role=row["role"] if entry_columns else "",
            position=(row["session_id"], row["epoch"], row["position"]) if entry_columns else None,
            occurred_at=row.get("searched_at"),
        )


def prose_of(text: str) -> str:
    """Return a document without its fact lines, which are searched as a kind of their own."""
    facts = {line.line for line in fact_lines(text)}
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in facts)


def date_words(at: datetime | None) -> str:
    """Return a date in the words that the indexes contain, such as "3 May 2026 Sunday 2026-05-03"."""
    return f"{at.day} {at:%B %Y %A %Y-%m-%d}" if at else ""
