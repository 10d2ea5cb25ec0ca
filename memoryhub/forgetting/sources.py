"""The sources of knowledge entries and observations, by every name that they have or had. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from django.db.models import Model

from knowledge_app.models import EditedRow, KnowledgeEntry, Observation
from memoryhub.forgetting.matching import digest_of
from sessions_app.models import Workspace

TABLES: dict[type[Model], tuple[str, str]] = {  # name and column of the agents' ids
    KnowledgeEntry: ("knowledge", "content_id"),
    Observation: ("observations", "uid"),
}
BATCH_ROWS = 2_000
UID_CHARS = 8  # of an id that some lists of agents shorten to these
Place = tuple[str, int]  # a table and a primary key


class NamedRow(NamedTuple):
    """A row and a source that it has, that it has in the agent's file, or that it had before."""

    table: str
    pk: int
    own_id: str
    source: str

    @property
    def place(self) -> Place:
        return self.table, self.pk


def named_rows(workspace: Workspace) -> Iterator[NamedRow]:
    """Yield the rows of a workspace by each of their sources, also rows of which only earlier states are left."""
    for model, (table, key) in TABLES.items():
        ids: dict[int, str] = {}
        tracked: Any = model
        for rows in (tracked._base_manager, tracked.history):
            found = rows.filter(workspace=workspace.pk).values_list("id", key, "source", "corrected")
            for pk, own_id, source, corrected in found.iterator(chunk_size=BATCH_ROWS):
                ids[pk] = own_id
                yield from (NamedRow(table, pk, own_id, name) for name in _names(source, corrected.get("source")))
        edited = EditedRow.objects.filter(run__workspace=workspace.pk, table=table)
        for pk, *states in edited.values_list("object_id", "before", "after").iterator(chunk_size=BATCH_ROWS):
            names = _names(*((state or {}).get("source") for state in states))
            yield from (NamedRow(table, pk, ids.get(pk, ""), name) for name in names)


def _names(*found: object) -> Iterator[str]:
    return (name.strip() for name in found if isinstance(name, str) and name.strip())


def rows_from(workspace: Workspace, is_erased: Callable[[NamedRow], bool]) -> frozenset[Place]:
    """Return the rows of which a source is erased."""
    return frozenset(row.place for row in named_rows(workspace) if is_erased(row))


def names_of(workspace: Workspace, rows: frozenset[Place]) -> frozenset[str]:
    """Return every source that rows have or had."""
    return frozenset(row.source for row in named_rows(workspace) if row.place in rows) if rows else frozenset()


def row_hashes(workspace: Workspace, sources: Iterable[str], key: bytes) -> list[str]:
    """Return hashes of the rows from erased sources with the other names of these.

    By these, an import recognises a row whose source a person corrected, without leaving out others of that source.
    """
    erased = {name.strip() for name in sources}
    rows = rows_from(workspace, lambda row: row.source in erased)
    others = (row for row in named_rows(workspace) if row.place in rows and row.source not in erased)
    return sorted({row_hash(row.table, own_id, row.source, key) for row in others for own_id in _ids(row)})


def _ids(row: NamedRow) -> tuple[str, ...]:
    return (row.own_id, row.own_id[:UID_CHARS]) if row.table == "observations" else (row.own_id,)


def row_hash(table: str, own_id: str, source: str, key: bytes) -> str:
    """Return the keyed hash of a row with one of its sources."""
    return digest_of((table, own_id, source.strip()), key).hash


def is_in(hashes: frozenset[str], key: bytes) -> Callable[[NamedRow], bool]:
    """Return a function that tells whether a row or its source is among erased hashes."""

    def is_erased(row: NamedRow) -> bool:
        own = (row.source,)
        return digest_of(own, key).hash in hashes or row_hash(row.table, row.own_id, row.source, key) in hashes

    return is_erased
