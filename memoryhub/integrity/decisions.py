"""What the audit log says was held, decided and forgotten, compared with held changes, held rows and receipts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db.models import CharField, Exists, Model, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast

from knowledge_app.models import Forgotten, HeldChange, HeldRow
from knowledge_app.services.held_rows import LINKS
from memoryhub.integrity.documents import erasures
from sessions_app.models import AuditRecord

Finding = tuple[str, str]
Status = HeldChange.Status
STATUSES = {
    "change.held": Status.PENDING,
    "change.reopened": Status.PENDING,
    "change.approved": Status.APPROVED,
    "change.rejected": Status.REJECTED,
    "change.superseded": Status.SUPERSEDED,
}


def check_decisions() -> tuple[int, Iterable[Finding]]:
    """A held change has the status that was recorded last, and exists unless text was erased since.

    Earlier versions recorded only what superseded most of them, at the same time.
    """
    records = AuditRecord.objects.filter(object_kind="held_change", action__in=STATUSES)
    latest = records.filter(object_id=OuterRef("text_id")).order_by("-pk").values("action")[:1]
    waited = [action for action, status in STATUSES.items() if status == Status.PENDING]
    times = AuditRecord.objects.values("at")
    fits = Q(recorded__in=waited, status=Status.SUPERSEDED, decided_at__in=times)
    for action, status in STATUSES.items():
        fits |= Q(recorded=action, status=status)
    changes = _with_text_id(HeldChange).annotate(recorded=Subquery(latest)).exclude(recorded=None)
    wrong = changes.exclude(pk__in=changes.filter(fits).values("pk"))
    found = [("its status isn't the recorded one", f"held change {pk}") for pk in _pks(wrong)]
    lost = _of_missing(records.filter(action="change.held"), HeldChange).exclude(Exists(erasures("workspace", "pk")))
    found += [("it was held and is gone", f"held change {pk}") for pk in _object_ids(lost)]
    return HeldChange.objects.count(), found


def check_held_rows() -> tuple[int, Iterable[Finding]]:
    """A row that was held is so until a person approves it or its text changes.

    Its latest state has the time of a hold if it wasn't changed since. New rows of files have no own record.
    """
    return HeldRow.objects.count(), _released_rows()


def _released_rows() -> Iterator[Finding]:
    for model, link in LINKS.items():
        holds = AuditRecord.objects.filter(object_kind=link, action="row.held")
        own = holds.filter(object_id=OuterRef("text_id"))
        rows = _with_text_id(model).filter(hold=None, text_id__in=holds.values("object_id"))
        rows = rows.annotate(held=Subquery(own.order_by("-pk").values("pk")[:1]))
        approvals = AuditRecord.objects.filter(object_kind=link, action="row.approved", pk__gt=OuterRef("held"))
        rows = rows.exclude(Exists(approvals.filter(object_id=OuterRef("text_id"))))
        if hasattr(model, "history"):
            states = model.history.filter(id=OuterRef("pk")).order_by("-history_id")
            rows = rows.annotate(written_at=Subquery(states.values("history_date")[:1]))
            rows = rows.filter(Exists(own.filter(at=OuterRef("written_at"))))
        for pk in _pks(rows):
            yield "it was held, and nobody approved it", f"{model._meta.verbose_name} {pk}"


def check_receipts() -> tuple[int, Iterable[Finding]]:
    """The receipt of what was forgotten exists, and applies until it was lifted.

    A receipt that found no rows isn't kept, and older restores recorded another id, without rows.
    """
    records = AuditRecord.objects.filter(object_kind="forgotten").annotate(said=Cast("detail", TextField()))
    forgotten = records.filter(action="memory.forgotten", said__contains='"rows":{"')
    found = [("it is gone", f"receipt {pk}") for pk in _object_ids(_of_missing(forgotten, Forgotten))]
    lifted = records.filter(action="forgotten.lifted").values("object_id")
    unrecorded = _with_text_id(Forgotten).exclude(lifted_at=None).exclude(text_id__in=lifted)
    found += [("nobody lifted it", f"receipt {pk}") for pk in _pks(unrecorded)]
    return Forgotten.objects.count(), found


def _with_text_id(model: type[Model]) -> QuerySet[Model]:
    return model._default_manager.annotate(text_id=Cast("pk", CharField()))


def _of_missing(records: QuerySet[AuditRecord], model: type[Model]) -> QuerySet[AuditRecord]:
    return records.exclude(object_id__in=_with_text_id(model).values("text_id"))


def _object_ids(records: QuerySet[AuditRecord]) -> list[str]:
    return list(records.order_by("object_id").values_list("object_id", flat=True).distinct()[:100])


def _pks(rows: QuerySet[Model]) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True)[:100])
