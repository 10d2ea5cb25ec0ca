"""The items of the inbox as its list shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Coalesce, Substr
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from knowledge_app.models import Concern, HeldChange, HeldRow, KeyValue, MemoryDocument
from memoryhub.hygiene.rows import rows_at, shown_text
from memoryhub.inbox.attention import budget_items, folder_items, late_items, run_text
from memoryhub.inbox.attention_items import AttentionItem
from memoryhub.inbox.change_lines import LINES_CHARS, worst_line
from memoryhub.inbox.decisions import noted_imports
from memoryhub.inbox.failures import delivery_item, import_items, job_item
from memoryhub.inbox.queue import QueueRow
from memoryhub.lib.masked_text import masked
from memoryhub.models import Job
from memoryhub.permissions import is_hub_operator
from sessions_app.models import ImportReport, Membership, Run, WebhookDelivery, Workspace

EDITOR, OPERATOR = Membership.Role.EDITOR, Membership.Role.OPERATOR
TITLE_CHARS = 160
READ_CHARS = 2_000
SEVERITIES = ("problem", "warning", "info")
KINDS = {  # label of the filter, label of one item
    "change": (gettext_lazy("Changes"), gettext_lazy("Change")),
    "conflict": (gettext_lazy("Conflicts"), gettext_lazy("Conflict")),
    "addition": (gettext_lazy("Additions"), gettext_lazy("Addition")),
    "correction": (gettext_lazy("Corrections"), gettext_lazy("Correction")),
    "secret": (gettext_lazy("Secrets"), gettext_lazy("Secret")),
    "injection": (gettext_lazy("Prompt injection"), gettext_lazy("Prompt injection")),
    "duplicate": (gettext_lazy("Duplicates"), gettext_lazy("Duplicate")),
    "contradiction": (gettext_lazy("Contradictions"), gettext_lazy("Contradiction")),
    "personal": (gettext_lazy("Personal data"), gettext_lazy("Personal data")),
    "stale": (gettext_lazy("Stale"), gettext_lazy("Stale")),
    "folder": (gettext_lazy("Folders"), gettext_lazy("Folder")),
    "run": (gettext_lazy("Runs"), gettext_lazy("Run")),
    "job": (gettext_lazy("Jobs"), gettext_lazy("Job")),
    "import": (gettext_lazy("Imports"), gettext_lazy("Import")),
    "webhook": (gettext_lazy("Webhooks"), gettext_lazy("Webhook")),
    "budget": (gettext_lazy("Budget"), gettext_lazy("Budget")),
}
OF_OPERATORS = ("folder", "import", "note", "webhook", "late")  # tables; others are decided by editors
REASONS: dict[str, Promise] = {
    EDITOR: gettext_lazy("You can view this. Deciding it needs the role Editor in this workspace."),
    OPERATOR: gettext_lazy("You can view this. Deciding it needs the role Operator in this workspace."),
}


@dataclass(frozen=True)
class InboxItem:
    """One item. ``quote``: what an agent says about it. ``url``: the page of its row. ``refusal``: why the person may
    not decide it, "" if they may. ``line``: the changed line with the worst finding, or the first one, with its sign.
    ``chips``: its findings after the worst, which is in the title."""

    row: QueueRow
    title: str
    note: str
    quote: str
    url: str
    workspace: Workspace | None
    refusal: str
    line: tuple[str, str] = ("", "")
    chips: tuple[str, ...] = ()
    is_grave: bool = False

    @property
    def key(self) -> str:
        return self.row.key

    @property
    def severity(self) -> str:
        return SEVERITIES[0 if self.is_grave else self.row.severity]

    @property
    def label(self) -> str:
        return str(KINDS[self.row.kind][1])


@dataclass(frozen=True)
class _Text:
    title: str
    note: str = ""
    url: str = ""
    quote: str = ""
    line: tuple[str, str] = ("", "")
    chips: tuple[str, ...] = ()
    is_grave: bool = False
    is_of_several: bool = False  # workspaces, none of which is named


def load_items(
    rows: Sequence[QueueRow], user: AbstractBaseUser | AnonymousUser, shown: QuerySet[Workspace]
) -> list[InboxItem]:
    """Return the items of queue rows, in order, without those deleted meanwhile. Two or three queries per table.

    ``shown``: the workspaces of the queue.
    """
    pks: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        pks[row.table].append(row.pk)
    texts = {
        table: _notes(found, shown) if table == "note" else LOADERS[table](found) for table, found in pks.items()
    }
    workspaces = Workspace.objects.in_bulk({row.workspace for row in rows if row.workspace})
    roles = dict(Membership.objects.filter(user=user.pk, workspace__in=workspaces).values_list("workspace", "role"))
    items = []
    for row in rows:
        text = texts[row.table].get(row.pk)
        if text:
            workspace = workspaces.get(row.workspace or 0)
            refusal = "" if is_hub_operator(user) else _refusal(row, workspace, roles.get(row.workspace or 0, ""))
            named = None if text.is_of_several else workspace
            item = InboxItem(row, text.title, text.note, text.quote, text.url, named, refusal)
            items.append(replace(item, line=text.line, chips=text.chips, is_grave=text.is_grave))
    return items


def item_title(table: str, pk: int) -> str:
    """Return what a message calls an item whose row exists, "" if it has no title of its own."""
    found = LOADERS[table]([pk]).get(pk) if table in LOADERS else None
    if found is None:
        return ""
    title = found.quote if table == "row" else found.title
    return Truncator(" ".join([title, *filter(None, found.line)])).chars(120)


def needed_role(table: str, workspace: Workspace | None) -> str:
    """Return the role that decides items of a table. Writing to a folder without write-back needs an operator."""
    is_sent_once = table == "document" and workspace is not None and not workspace.write_back
    return OPERATOR if table in OF_OPERATORS or is_sent_once else EDITOR


def _refusal(row: QueueRow, workspace: Workspace | None, role: str) -> str:
    needed = needed_role(row.table, workspace)
    return "" if role in (needed, OPERATOR) else str(REASONS[needed])


def short(text: str) -> str:
    """Return a text on one line, cut to the length of a title."""
    return Truncator(" ".join(text.split())).chars(TITLE_CHARS)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _changes(pks: Collection[int]) -> dict[int, _Text]:
    rows = HeldChange.objects.filter(pk__in=pks).select_related("document").defer("proposed", "raw")
    rows = rows.annotate(
        old_start=Coalesce(Substr("ours__content", 1, LINES_CHARS), Value("")),
        new_start=Substr("proposed", 1, LINES_CHARS),
    )
    return {
        row.pk: _Text(
            short(row.title),
            row.author,
            quote=short(masked(row.reason)) if row.has_own_reason else "",
            line=_line_of(row),
            chips=tuple(row.findings[1:]),
            is_grave=row.is_grave,
        )
        for row in rows
    }


def _line_of(change: Any) -> tuple[str, str]:
    """Return the line of a change to show, with its sign and without secrets."""
    sign, line = worst_line(change, change.old_start, change.new_start)
    return sign, short(masked(line))


def _held_rows(pks: Collection[int]) -> dict[int, _Text]:
    links = ("knowledge", "observation", "key_value", "history_entry")
    return {
        held.pk: _Text(_sentence(", ".join(held.reasons)), held.author_name, quote=short(row_text(held)[:READ_CHARS]))
        for held in HeldRow.objects.filter(pk__in=pks).select_related(*links)
    }


def row_text(held: HeldRow) -> str:
    """Return the text of a held row, with secrets masked."""
    return text_of_row(held.row)


def text_of_row(row: Any) -> str:
    """Return the text of a row that can be held, with secrets masked."""
    if isinstance(row, KeyValue):
        return masked(f"{row.key} = {'••••' if row.is_secret else row.value}")
    return masked(row.content)


def _findings(pks: Collection[int]) -> dict[int, _Text]:
    concerns = list(Concern.objects.filter(pk__in=pks).select_related("workspace"))
    found = {}
    for concern, text in _with_text(concerns):
        what = _sentence(concern.what)
        is_said = concern.kind == Concern.Kind.ORDER  # whoever wrote it may want to mislead the reader, too
        found[concern.pk] = _Text(what, quote=short(text)) if is_said else _Text(short(text), what)
    return found


def _with_text(concerns: Sequence[Concern]) -> list[tuple[Concern, str]]:
    """Return concerns with the text of their first row. One query per workspace and table."""
    places: defaultdict[tuple[Workspace, str], set[int]] = defaultdict(set)
    for concern in concerns:
        places[concern.workspace, concern.table].add(concern.object_id)
    found = {
        (workspace.pk, table, pk): row
        for (workspace, table), pks in places.items()
        for pk, row in rows_at(workspace, table, pks).items()
    }
    texts = []
    for concern in concerns:
        row = found.get((concern.workspace_id, concern.table, concern.object_id))
        texts.append((concern, shown_text(row, concern.kind) if row else _("This row was deleted.")))
    return texts


def _duplicates(pks: Collection[int]) -> dict[int, _Text]:
    concerns = list(Concern.objects.filter(pk__in=pks).select_related("workspace"))
    same = Q(pk__in=[])
    for one in concerns:
        same |= Q(workspace=one.workspace_id, table=one.table, object_id=one.object_id)
    others = Concern.objects.filter(same, kind=Concern.Kind.DUPLICATE, status=Concern.Status.OPEN)
    counts: defaultdict[tuple[int, str, int], int] = defaultdict(int)
    for place in others.values_list("workspace", "table", "object_id"):
        counts[place] += 1
    return {
        concern.pk: _Text(short(text), _copies(1 + counts[concern.workspace_id, concern.table, concern.object_id]))
        for concern, text in _with_text(concerns)
    }


def _copies(count: int) -> str:
    return ngettext("%(count)d copy", "%(count)d copies", count) % {"count": count}


def _documents(pks: Collection[int]) -> dict[int, _Text]:
    text = _("The agent still reads the old text of %(document)s.")
    names = MemoryDocument.objects.filter(pk__in=pks).values_list("pk", "name")
    return {pk: _Text(text % {"document": name}) for pk, name in names}


def _runs(pks: Collection[int]) -> dict[int, _Text]:
    kinds = {Run.Status.PARKED: "parked", Run.Status.HELD: "approval"}
    texts = {}
    for run in Run.objects.filter(pk__in=pks).only("kind", "status", "error"):
        text = run_text(kinds.get(Run.Status(run.status), "failed"))
        texts[run.pk] = _Text(text % {"kind": run.get_kind_display(), "number": run.pk}, short(masked(run.error)))
    return texts


def _jobs(pks: Collection[int]) -> dict[int, _Text]:
    return {job.pk: _of(job_item(job)) for job in Job.objects.filter(pk__in=pks).select_related("workspace")}


def _imports(pks: Collection[int]) -> dict[int, _Text]:
    return {item.pk: _of(item) for item in import_items(ImportReport.objects.filter(pk__in=pks))}


def _notes(pks: Collection[int], workspaces: QuerySet[Workspace]) -> dict[int, _Text]:
    """Return the text of the one item for all imports with warnings."""
    found = noted_imports(workspaces, _now())
    count = len(found)
    text = ngettext("%(count)d import has warnings.", "%(count)d imports have warnings.", count) % {"count": count}
    places = ImportReport.objects.filter(pk__in=found).order_by().values("workspace").distinct()[:2]
    return dict.fromkeys(pks, _Text(text, _("Lines that couldn't be imported"), is_of_several=len(places) > 1))


def _deliveries(pks: Collection[int]) -> dict[int, _Text]:
    rows = WebhookDelivery.objects.filter(pk__in=pks).select_related("webhook__workspace")
    return {row.pk: _of(delivery_item(row)) for row in rows}


def _of(item: AttentionItem) -> _Text:
    return _Text(item.text, "", item.url)


def _by_workspace(find: Callable[..., list[AttentionItem]]) -> Callable[[Collection[int]], dict[int, _Text]]:
    def load(pks: Collection[int]) -> dict[int, _Text]:
        workspaces = Workspace.objects.filter(pk__in=pks)
        by_slug = {item.slug: _of(item) for item in find(workspaces, _now())}
        return {row.pk: by_slug[row.slug] for row in workspaces if row.slug in by_slug}

    return load


def _now() -> datetime:
    return timezone.now()


LOADERS: dict[str, Callable[[Collection[int]], dict[int, _Text]]] = {
    "change": _changes,
    "row": _held_rows,
    "finding": _findings,
    "duplicate": _duplicates,
    "document": _documents,
    "run": _runs,
    "job": _jobs,
    "import": _imports,
    "webhook": _deliveries,
    "late": _by_workspace(late_items),
    "budget": _by_workspace(budget_items),
    "folder": _by_workspace(folder_items),
}
