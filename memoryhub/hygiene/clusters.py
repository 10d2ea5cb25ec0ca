"""Clusters of duplicates: rows that say the same. Each open duplicate concern links the kept row to one other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.models import Min, Q, QuerySet

from knowledge_app.models import Concern
from memoryhub.hygiene.concern_rows import ConcernRow, rows_of_concerns
from sessions_app.models import Workspace

Kind, Status = Concern.Kind, Concern.Status


@dataclass(frozen=True)
class Cluster:
    """Rows that say the same. ``first``: its first concern; ``sides``: the row to keep, then the others."""

    first: Concern
    concern_pks: list[int]
    sides: list[ConcernRow]

    @property
    def other_count(self) -> int:
        """The number of rows that keeping one withdraws."""
        return len(self.concern_pks)

    @property
    def can_be_edited(self) -> bool:
        """Whether the texts shown are the stored ones."""
        return all(side.is_exact for side in self.sides)


def one_per_cluster(concerns: QuerySet[Concern]) -> QuerySet[Concern]:
    """Return concerns with only the first one of each cluster of duplicates."""
    duplicates = concerns.filter(kind=Kind.DUPLICATE).order_by()
    firsts = duplicates.values("workspace", "status", "table", "object_id").annotate(first=Min("pk")).values("first")
    return concerns.filter(~Q(kind=Kind.DUPLICATE) | Q(pk__in=firsts))


def whole_clusters(workspace: Workspace, pks: Collection[int]) -> list[int]:
    """Return the keys of concerns with those of all concerns of their clusters."""
    chosen = Concern.objects.filter(workspace=workspace, pk__in=pks, kind=Kind.DUPLICATE)
    same = Q(pk__in=pks)
    for status, table, row in set(chosen.values_list("status", "table", "object_id")):
        same |= Q(kind=Kind.DUPLICATE, status=status, table=table, object_id=row)
    return list(Concern.objects.filter(same, workspace=workspace).order_by("id").values_list("pk", flat=True))


def concerns_of_cluster(concern: Concern) -> list[Concern]:
    """Return the open concerns of a duplicate's cluster, in order."""
    same = Q(workspace=concern.workspace_id, table=concern.table, object_id=concern.object_id)
    return list(Concern.objects.filter(same, kind=Kind.DUPLICATE, status=Status.OPEN).order_by("id"))


def sides_of_concerns(
    workspace: Workspace, concerns: Sequence[Concern], *, may_forget: bool = False
) -> list[tuple[Concern, list[ConcernRow], Cluster | None]]:
    """Return concerns with their rows, and duplicates with their clusters. A few queries, for any number of them."""
    pks = whole_clusters(workspace, [concern.pk for concern in concerns])
    whole = list(Concern.objects.filter(pk__in=pks).order_by("id"))
    sides = {one.pk: found for one, found in rows_of_concerns(workspace, whole, may_forget=may_forget)}
    groups: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
    for one in (found for found in whole if found.kind == Kind.DUPLICATE):
        groups[one.status, one.table, one.object_id].append(one.pk)
    shown = []
    for concern in concerns:
        group = [pk for pk in groups[concern.status, concern.table, concern.object_id] if pk in sides]
        is_duplicate = concern.kind == Kind.DUPLICATE
        cluster = _cluster(concern, group, sides) if is_duplicate else None
        shown.append((concern, sides.get(concern.pk, []), cluster))
    return shown


def _cluster(concern: Concern, group: list[int], sides: dict[int, list[ConcernRow]]) -> Cluster | None:
    found = {(side.table, side.pk): side for pk in group for side in sides[pk] if side.is_living}
    return Cluster(concern, group, list(found.values())) if found else None
