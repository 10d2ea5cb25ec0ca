"""Dismiss failed imports, warnings of imports and failed jobs, so that they no longer need attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import NotFound
from memoryhub.models import Job
from memoryhub.role_scope import RoleScope
from sessions_app.models import ImportReport
from sessions_app.services.audit import By, record

MAX_CHOSEN = 200
FINISHED = (ImportReport.Status.DONE, ImportReport.Status.FAILED)


@db_retry.retried
@transaction.atomic
def set_dismissed(chosen: Mapping[str, Sequence[int]], scope: RoleScope, *, dismissed: bool, by: By) -> int:
    """Dismiss imports and jobs, or restore them; return how many were changed. Raises NotFound.

    ``chosen``: primary keys by "import" and "job". Imports need an operator, jobs an editor.
    """
    tables: dict[str, QuerySet[Any]] = {
        "import": ImportReport.objects.filter(_in(scope, scope.operated), status__in=FINISHED),
        "job": Job.objects.filter(_in(scope, scope.curated), status=Job.Status.FAILED),
    }
    return sum(_set(name, rows, chosen.get(name, ()), dismissed=dismissed, by=by) for name, rows in tables.items())


def _in(scope: RoleScope, workspaces: QuerySet[Any]) -> Q:
    mine = Q(workspace__in=workspaces.values("pk"))
    return mine | Q(workspace=None) if scope.is_whole else mine


def _set(name: str, rows: QuerySet[Any], pks: Sequence[int], *, dismissed: bool, by: By) -> int:
    wanted = set(pks[:MAX_CHOSEN])
    found = list(
        rows.select_for_update(of=("self",)).filter(pk__in=wanted).select_related("workspace").order_by("pk")
    )
    if len(found) != len(wanted):
        raise NotFound("There is no such failure.", code="not_found")
    changed = [row for row in found if (row.dismissed_at is not None) != dismissed]
    verb = "dismissed" if dismissed else "restored"
    for row in changed:
        row.dismissed_at = by.at if dismissed else None
        row.save(update_fields=["dismissed_at"])
        text = f"{name.capitalize()} {row.pk} was {verb}"
        record(by, f"{name}.{verb}", name, row.pk, text, workspace=row.workspace)
    return len(changed)
