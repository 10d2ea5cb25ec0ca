"""What the reranker is given of a kind's rows: their texts up to a bound, who, when and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import F, Q, TextField
from django.db.models.functions import Substr

from memoryhub.lib.search.neighbour_smoothing import Place
from memoryhub.lib.search.rank import Candidate
from memoryhub.lib.text.facts import fact_lines
from memoryhub.search.filters import FilteredKind
from memoryhub.search.kinds import Kind

SCORED_CHARS = 20_000  # of a text; the index holds more, and says which rows to look at


def load_candidates(kind: Kind, pks: Sequence[int]) -> list[Candidate]:
    """Return rows of a kind as candidates, in the order of their keys; one query."""
    rows = kind.model._default_manager.filter(pk__in=pks)
    found = {one.pk: one for one in _candidates(kind, rows)}
    return [found[pk] for pk in pks if pk in found]


def load_neighbours(fitting: FilteredKind, places: Iterable[Place]) -> list[Candidate]:
    """Return the entries at some places that a query's filters leave, as candidates; two queries.

    Keys come first: beside a workspace's key SQLite would read all of that workspace.
    """
    by_epoch: dict[tuple[int, int], list[int]] = {}
    for session, epoch, position in places:
        by_epoch.setdefault((session, epoch), []).append(position)
    condition = Q(pk__in=[])
    for (session, epoch), positions in by_epoch.items():
        condition |= Q(session=session, epoch=epoch, position__in=positions)
    keys = list(fitting.kind.model._default_manager.filter(condition).values_list("pk", flat=True))
    return list(_candidates(fitting.kind, fitting.rows.filter(pk__in=keys))) if keys else []


def _candidates(kind: Kind, rows: Any) -> Iterable[Candidate]:
    names = [*kind.texts, *kind.metas]
    columns = {f"searched_{name}": Substr(name, 1, SCORED_CHARS, output_field=TextField()) for name in names}
    flags = list(kind.hidden_by.values())
    place = ["session_id", "epoch", "position"] if kind.name == "entry" else []
    time = {"searched_at": F(kind.time)} if kind.time else {}
    for row in rows.annotate(**columns, **time).values("pk", *columns, *time, *flags, *place):
        texts = [row[f"searched_{name}"] for name in kind.texts if not row.get(kind.hidden_by.get(name, ""))]
        if kind.name == "document":
            texts = [prose_of(text) for text in texts]
        yield Candidate(
            row["pk"],
            "\n".join(text for text in texts if text and text != "[]"),
            meta="\n".join([*(row[f"searched_{name}"] for name in kind.metas), date_words(row.get("searched_at"))]),
            author=row["searched_name"] if kind.author else "",
            place=(row["session_id"], row["epoch"], row["position"]) if place else None,
            occurred_at=row.get("searched_at"),
        )


def prose_of(text: str) -> str:
    """Return a document without its fact lines, which are a kind of their own."""
    facts = {line.line for line in fact_lines(text)}
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in facts)


def date_words(at: datetime | None) -> str:
    """Return the words by which a day is found, as the indexes hold them."""
    return f"{at.day} {at:%B %Y %A %Y-%m-%d}" if at else ""
