"""Long work as pages name it: what it is, how far, how long still, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from memoryhub.backups.folder import CANCELLABLE
from memoryhub.jobs.listing import Piece
from memoryhub.templatetags.memoryhub import filesize

KINDS: dict[str, Promise | str] = {
    "export": _("Export"),
    "compression": _("Compression of sessions"),
    "rebuild": _("Rebuild of search"),
    "import": _("Import"),
    "sync": _("Sync with the agent’s folder"),
    "backup": _("Backup of the hub"),
}
RUNS: dict[str, Promise | str] = {
    "compression": _("Compression"),
    "consolidation": _("Consolidation"),
    "extraction": _("Extraction"),
    "embedding": _("Embedding"),
    "scan": _("Scan"),
    "edit": _("Edit"),
    "compaction": _("Compaction"),
}
STATES: dict[str, Promise | str] = {
    "queued": _("Waiting"),
    "running": _("Under way"),
    "done": _("Done"),
    "failed": _("Failed"),
    "cancelled": _("Cancelled"),
    "held": _("Waits for you"),
    "parked": _("Parked"),
    "undone": _("Undone"),
}
COUNTED: dict[str, Promise | str] = {
    "rows": _("%(done)s of %(total)s rows"),
    "sessions": _("%(done)s of %(total)s sessions"),
    "files": _("%(done)s of %(total)s files"),
    "parts": _("%(done)s of %(total)s parts"),
}
ADDED = {
    "sessions": ngettext_lazy("%(count)s session", "%(count)s sessions", "n"),
    "entries": ngettext_lazy("%(count)s entry", "%(count)s entries", "n"),
    "summaries": ngettext_lazy("%(count)s summary", "%(count)s summaries", "n"),
    "documents": ngettext_lazy("%(count)s document", "%(count)s documents", "n"),
    "history": ngettext_lazy("%(count)s history", "%(count)s history", "n"),
    "knowledge": ngettext_lazy("%(count)s knowledge", "%(count)s knowledge", "n"),
    "observations": ngettext_lazy("%(count)s observation", "%(count)s observations", "n"),
    "key_values": ngettext_lazy("%(count)s key value", "%(count)s key values", "n"),
    "cached_responses": ngettext_lazy("%(count)s cached response", "%(count)s cached responses", "n"),
    "terms": ngettext_lazy("%(count)s term", "%(count)s terms", "n"),
}
OUTCOMES: dict[str, Promise | str] = {
    "done": _("%(count)s compressed"),
    "held": _("%(count)s wait for you"),
    "failed": _("%(count)s failed"),
    "nothing_due": _("%(count)s with nothing to fold"),
    "cancelled": _("%(count)s cancelled"),
}


@dataclass(frozen=True)
class WorkRow:
    """A piece of work with its words and addresses; an address that isn't for this person is ""."""

    piece: Piece
    title: str
    state: str
    progress: str
    result: str
    url: str
    cancel_url: str
    download_url: str


def work_row(piece: Piece, *, may_decide: bool) -> WorkRow:
    """Return a piece of work as a page shows it to somebody who may decide about it, or only see it."""
    may_cancel = may_decide and piece.is_live and not piece.is_cancelling
    has_file = piece.table == "job" and bool(piece.row.file_name)
    return WorkRow(
        piece,
        title=_title(piece),
        state=_state(piece),
        progress=_progress(piece),
        result=_result(piece),
        url=_url(piece),
        cancel_url=_cancel_url(piece) if may_cancel else "",
        download_url=reverse("download-job", args=[piece.number]) if has_file and may_decide else "",
    )


def _state(piece: Piece) -> str:
    if piece.is_interrupted:
        return gettext("Interrupted")
    return gettext("Cancelling") if piece.is_cancelling else str(STATES[piece.status])


def _title(piece: Piece) -> str:
    if piece.table == "run":
        return f"{RUNS[piece.kind]} {piece.number}"
    return f"{KINDS[piece.kind]} {piece.number}" if piece.table in ("job", "import") else str(KINDS[piece.kind])


def _url(piece: Piece) -> str:
    slug = piece.workspace.slug if piece.workspace else ""
    addresses: dict[str, tuple[str, list[Any]]] = {
        "job": ("job", [piece.number]),
        "import": ("import-report", [piece.number]),
        "run": ("run", [slug, piece.number]),
        "sync": ("sync", [slug]),
        "backup": ("backups", []),
    }
    name, arguments = addresses[piece.table]
    return reverse(name, args=arguments)


def _cancel_url(piece: Piece) -> str:
    if piece.table == "run" and piece.workspace:
        return reverse("cancel-run", args=[piece.workspace.slug, piece.number])
    if piece.table == "backup":
        return reverse("cancel-backup") if piece.row in CANCELLABLE else ""
    names = {"job": "cancel-job", "import": "cancel-import"}
    return reverse(names[piece.table], args=[piece.number]) if piece.table in names else ""


def _progress(piece: Piece) -> str:
    if piece.status != "running" or not piece.total:
        return ""
    counted = str(COUNTED[piece.unit]) % {"done": f"{piece.done:,}", "total": f"{piece.total:,}"}
    return f"{counted} · {_left(piece.seconds_left)}" if piece.seconds_left is not None else counted


def _left(seconds: int) -> str:
    if seconds < 90:
        count = max(1, seconds if seconds < 10 else round(seconds, -1))
        return ngettext("about %(count)d s left", "about %(count)d s left", count) % {"count": count}
    minutes = round(seconds / 60)
    return ngettext("about %(count)d min left", "about %(count)d min left", minutes) % {"count": minutes}


def _result(piece: Piece) -> str:
    """Say what came of a job or an import, as far as it came."""
    if piece.table == "import":
        return _import_words(piece)
    if piece.table != "job":
        return ""
    words = {"export": _export_words, "compression": _compression_words, "rebuild": _rebuild_words}
    return words[piece.kind](piece.row.result)


def _import_words(piece: Piece) -> str:
    added = added_words(piece.row.added)
    if piece.status != "done":
        return added
    read = ngettext("%(count)s file read", "%(count)s files read", piece.done) % {"count": f"{piece.done:,}"}
    return f"{read} · {added}" if added else read


def added_words(added: Mapping[str, int]) -> str:
    """Return what an import added: how many of each kind."""
    return ", ".join(_added(kind, count) for kind, count in added.items())


def _added(kind: str, count: int) -> str:
    if kind not in ADDED:
        return f"{count:,} {kind.replace('_', ' ')}"
    return str(ADDED[kind] % {"n": count, "count": f"{count:,}"})


def _export_words(result: dict[str, Any]) -> str:
    if not result:
        return ""
    rows, files = f"{sum(result['written'].values()):,}", result["files"]
    counted = ngettext("%(rows)s rows in %(files)s file", "%(rows)s rows in %(files)s files", files)
    return f"{counted % {'rows': rows, 'files': f'{files:,}'}}, {filesize(result['bytes'])}"


def _compression_words(result: dict[str, Any]) -> str:
    counts = result.get("counts", {})
    parts = [str(words) % {"count": f"{counts[name]:,}"} for name, words in OUTCOMES.items() if counts.get(name)]
    nothing = gettext("No session was due.") if "counts" in result and not parts and "run" not in result else ""
    return ", ".join(parts) or nothing


def _rebuild_words(result: dict[str, Any]) -> str:
    found = result.get("indexes", [])
    if not found:
        return ""
    wrong = sum(bool(one["faults"]) for one in found)
    made = ngettext("%(count)d index made anew", "%(count)d indexes made anew", len(found)) % {"count": len(found)}
    was = gettext("all agreed with their rows before")
    if wrong:
        was = ngettext("%(count)d disagreed with its rows", "%(count)d disagreed with their rows", wrong)
    return f"{made}; {was % {'count': wrong}}"
