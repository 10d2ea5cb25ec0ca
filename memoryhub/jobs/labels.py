"""Labels of jobs and runs on pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from memoryhub.jobs.kinds import kinds
from memoryhub.jobs.listing import WorkItem
from memoryhub.models import Job
from memoryhub.templatetags.memoryhub import filesize

STAGES: dict[str, Promise | str] = {"copying": _("copying"), "packing": _("packing"), "checking": _("checking")}
PAGES = {"import": "import-report", "sync": "sync", "backup": "backups", "backup_check": "backups"}  # else job
CANCEL_PAGES = {"import": "cancel-import", "backup": "cancel-backup", "backup_check": "cancel-backup"}
COUNTED: dict[str, Promise | str] = {
    "rows": _("%(done)s of %(total)s rows"),
    "sessions": _("%(done)s of %(total)s sessions"),
    "files": _("%(done)s of %(total)s files"),
    "workspaces": _("%(done)s of %(total)s workspaces"),
    "parts": _("%(done)s of %(total)s parts"),
}
ADDED = {
    "sessions": ngettext_lazy("%(count)s conversation", "%(count)s conversations", "n"),
    "entries": ngettext_lazy("%(count)s message", "%(count)s messages", "n"),
    "summaries": ngettext_lazy("%(count)s summary", "%(count)s summaries", "n"),
    "documents": ngettext_lazy("%(count)s document", "%(count)s documents", "n"),
    "history": ngettext_lazy("%(count)s history entry", "%(count)s history entries", "n"),
    "knowledge": ngettext_lazy("%(count)s knowledge entry", "%(count)s knowledge entries", "n"),
    "observations": ngettext_lazy("%(count)s observation", "%(count)s observations", "n"),
    "key_values": ngettext_lazy("%(count)s key-value", "%(count)s key-values", "n"),
    "cached_responses": ngettext_lazy("%(count)s cached response", "%(count)s cached responses", "n"),
    "terms": ngettext_lazy("%(count)s term", "%(count)s terms", "n"),
    "files": ngettext_lazy("%(count)s file", "%(count)s files", "n"),
}
OUTCOMES: dict[str, Promise | str] = {
    "done": _("%(count)s compressed"),
    "held": _("%(count)s awaiting review"),
    "failed": _("%(count)s failed"),
    "nothing_due": _("%(count)s already compressed"),
    "cancelled": _("%(count)s cancelled"),
}


@dataclass(frozen=True)
class WorkRow:
    """A job or run with its labels and URLs; a URL that this user may not use is ""."""

    item: WorkItem
    title: str
    state: str
    progress: str
    stage: str
    result: str
    url: str
    cancel_url: str
    download_url: str


def work_row(item: WorkItem, *, may_decide: bool) -> WorkRow:
    """Return the labels and URLs of a job or run. ``may_decide``: whether the user may cancel and download."""
    may_cancel = may_decide and item.is_live and not item.is_cancelling
    is_job = item.table != "run"
    can_cancel = may_cancel and (not is_job or item.status == "queued" or kinds()[item.kind].is_cancellable(item.row))
    return WorkRow(
        item,
        title=_title(item),
        state=_state(item),
        progress=_progress(item),
        stage=str(STAGES.get(item.stage, item.stage)) if item.is_live else "",
        result=_result(item),
        url=_url(item),
        cancel_url=_cancel_url(item) if can_cancel else "",
        download_url=reverse("download-job", args=[item.number])
        if is_job and item.row.file_name and may_decide
        else "",
    )


def _state(item: WorkItem) -> str:
    if item.is_interrupted:
        return gettext("Interrupted")
    return gettext("Cancelling") if item.is_cancelling else str(item.row.get_status_display())


def _title(item: WorkItem) -> str:
    label = item.row.get_kind_display() if item.table == "run" else gettext(kinds()[item.kind].label)
    return f"{label} {item.number}"


def _url(item: WorkItem) -> str:
    if item.table == "run":
        return reverse("run", args=[item.workspace.slug, item.number])
    page = PAGES.get(item.kind, "job")
    arguments = {"sync": [item.workspace and item.workspace.slug], "backups": []}
    return reverse(page, args=arguments.get(page, [item.number]))


def _cancel_url(item: WorkItem) -> str:
    if item.table == "run":
        return reverse("cancel-run", args=[item.workspace.slug, item.number])
    page = CANCEL_PAGES.get(item.kind, "cancel-job")
    return reverse(page, args=[] if page == "cancel-backup" else [item.number])


def _progress(item: WorkItem) -> str:
    if item.status != "running" or not item.total:
        return ""
    counted = str(COUNTED[item.unit]) % {"done": f"{item.done:,}", "total": f"{item.total:,}"}
    return f"{counted} · {_time_left(item.seconds_left)}" if item.seconds_left is not None else counted


def _time_left(seconds: int) -> str:
    if seconds < 90:
        count = max(1, seconds if seconds < 10 else round(seconds, -1))
        return ngettext("about %(count)d s left", "about %(count)d s left", count) % {"count": count}
    minutes = round(seconds / 60)
    return ngettext("about %(count)d min left", "about %(count)d min left", minutes) % {"count": minutes}


def _result(item: WorkItem) -> str:
    """Return a job's result so far."""
    if item.table == "run":
        return ""
    labels = {
        "export": _export_label,
        "compression": _compression_label,
        "rebuild": _rebuild_label,
    }
    if item.kind == "import":
        return _import_label(item)
    if item.kind == "erasure":
        return _erasure_label(item.row)
    return labels[item.kind](item.row.result) if item.kind in labels else ""


def _import_label(item: WorkItem) -> str:
    added = added_label(item.row.result.get("added", {}))
    if item.status != "done":
        return added
    read = ngettext("%(count)s file read", "%(count)s files read", item.done) % {"count": f"{item.done:,}"}
    return f"{read} · {added}" if added else read


def added_label(added: Mapping[str, int]) -> str:
    """Return the number of rows of each kind that an import added."""
    return ", ".join(_added(kind, count) for kind, count in added.items())


def _added(kind: str, count: int) -> str:
    if kind not in ADDED:
        return f"{count:,} {kind.replace('_', ' ')}"
    return str(ADDED[kind] % {"n": count, "count": f"{count:,}"})


def _export_label(result: dict[str, Any]) -> str:
    if not result:
        return ""
    rows, files = f"{sum(result['written'].values()):,}", result["files"]
    counted = ngettext("%(rows)s rows in %(files)s file", "%(rows)s rows in %(files)s files", files)
    return f"{counted % {'rows': rows, 'files': f'{files:,}'}}, {filesize(result['bytes'])}"


def _compression_label(result: dict[str, Any]) -> str:
    counts = result.get("counts", {})
    parts = [str(label) % {"count": f"{counts[name]:,}"} for name, label in OUTCOMES.items() if counts.get(name)]
    nothing = gettext("No session was due.") if "counts" in result and not parts and "run" not in result else ""
    return ", ".join(parts) or nothing


def _erasure_label(job: Job) -> str:
    result, expected = job.result, job.options.get("expected")
    if not result:
        return ""
    count = result["workspaces"]
    counted = ngettext(
        "Erased in %(rows)s rows of %(count)s workspace.", "Erased in %(rows)s rows of %(count)s workspaces.", count
    )
    traces = gettext(
        "The database file still contains traces of deleted rows. Run `python3 manage.py vacuum` at a quiet time."
    )
    parts = [counted % {"rows": f"{result['rows']:,}", "count": f"{count:,}"}]
    if expected is not None and expected != result["rows"]:
        parts.append(gettext("The preview counted %(rows)s.") % {"rows": f"{expected:,}"})
    return " ".join([*parts, *([] if result["vacuumed"] else [traces])])


def _rebuild_label(result: dict[str, Any]) -> str:
    found = result.get("indexes", [])
    if not found:
        return ""
    wrong = sum(bool(one["faults"]) for one in found)
    made = ngettext("%(count)d index rebuilt", "%(count)d indexes rebuilt", len(found)) % {"count": len(found)}
    was = gettext("none had errors")
    if wrong:
        was = ngettext("%(count)d had errors", "%(count)d had errors", wrong)
    return f"{made}; {was % {'count': wrong}}"
