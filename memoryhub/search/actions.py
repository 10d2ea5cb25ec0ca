"""Bulk actions on search results. An action applies to some kinds; results of other kinds are skipped and counted."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy, ngettext, ngettext_lazy

from knowledge_app.models import KnowledgeEntry, Observation
from knowledge_app.services.rows import knowledge
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.lib.errors import Invalid
from memoryhub.lib.masked_text import masked
from memoryhub.lib.search.query import Query
from memoryhub.lib.tables.formulas import guard
from memoryhub.search.filters import Scope, filtered_kinds, load
from memoryhub.search.kinds import KINDS
from memoryhub.search.results import row_document
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By

Keys = Mapping[str, Sequence[int]]  # of rows, by kind
KINDS_BY_ACTION = {
    "move": ("knowledge", "observation"),
    "tag": ("knowledge",),
    "untag": ("knowledge",),
    "pin": ("memory",),
    "unpin": ("memory",),
    "verify": ("memory", "knowledge", "observation"),
    "review": ("memory", "knowledge", "observation"),
    "withdraw": ("knowledge", "observation", "key_value"),
    "archive": ("session", "history"),
    "unarchive": ("session", "history"),
    "remove": ("cached",),
}
REFUSALS = {  # by action
    "move": gettext_lazy("%(kinds)s can't be moved to this category."),
    "tag": gettext_lazy("%(kinds)s can't be tagged."),
    "untag": gettext_lazy("%(kinds)s have no tags."),
    "pin": gettext_lazy("%(kinds)s can't be pinned."),
    "unpin": gettext_lazy("%(kinds)s can't be unpinned."),
    "verify": gettext_lazy("%(kinds)s can't be marked as verified."),
    "review": gettext_lazy("%(kinds)s can't have a review date."),
    "withdraw": gettext_lazy("%(kinds)s can't be withdrawn."),
    "archive": gettext_lazy("%(kinds)s can't be archived."),
    "unarchive": gettext_lazy("%(kinds)s can't be unarchived."),
    "remove": gettext_lazy("%(kinds)s can't be removed."),
}
NOT_APPLICABLE = "not_applicable"  # error code: the action applies to none of the kinds
CATEGORIES = {"knowledge": KnowledgeEntry.Category, "observation": Observation.Category}
COUNTED = {
    "entry": ngettext_lazy("%(count)s message", "%(count)s messages", "n"),
    "summary": ngettext_lazy("%(count)s summary", "%(count)s summaries", "n"),
    "memory": ngettext_lazy("%(count)s memory line", "%(count)s memory lines", "n"),
    "document": ngettext_lazy("%(count)s document", "%(count)s documents", "n"),
    "history": ngettext_lazy("%(count)s history entry", "%(count)s history entries", "n"),
    "knowledge": ngettext_lazy("%(count)s knowledge entry", "%(count)s knowledge entries", "n"),
    "observation": ngettext_lazy("%(count)s observation", "%(count)s observations", "n"),
    "key_value": ngettext_lazy("%(count)s key-value", "%(count)s key-values", "n"),
    "session": ngettext_lazy("%(count)s conversation", "%(count)s conversations", "n"),
    "cached": ngettext_lazy("%(count)s cached response", "%(count)s cached responses", "n"),
}
LOADED = 500  # rows per query in an export
COLUMNS = ("kind", "id", "workspace", "session", "position", "occurred_at", "category", "tags", "source", "text")


@dataclass
class ActionResult:
    """The runs that an action started (each can be undone) and what it skipped.

    ``skipped``: a phrase for each kind that the action doesn't apply to. ``duplicates``: knowledge entries that stay
    because the target category already has the same text.
    """

    runs: list[Run] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    duplicates: int = 0


def matching_keys(scope: Scope, query: Query, *, kinds: Iterable[str] = ()) -> dict[str, list[int]]:
    """Return the primary keys of all matches, by kind."""
    found = {
        filtered.kind.name: list(filtered.matches().order_by("pk").values_list("pk", flat=True))
        for filtered in filtered_kinds(scope, query, kinds)
    }
    return {kind: pks for kind, pks in found.items() if pks}


def keep_within(scope: Scope, keys: Keys) -> dict[str, list[int]]:
    """Drop keys of rows outside the scope, so that a foreign key is ignored like a missing one."""
    workspaces = None if scope.workspaces is None else list(scope.workspaces)
    found = {
        kind: list(KINDS[kind].rows(workspaces).filter(pk__in=pks).order_by("pk").values_list("pk", flat=True))
        for kind, pks in keys.items()
    }
    return {kind: pks for kind, pks in found.items() if pks}


def act(
    workspace: Workspace,
    keys: Keys,
    action: str,
    *,
    category: str = "",
    tags: Sequence[str] = (),
    reason: str = "",
    day: str = "",
    by: By,
) -> ActionResult:
    """Apply an action to rows of a workspace; kinds that it doesn't apply to are skipped.

    ``action``: move (to ``category``), tag or untag (``tags``), pin, unpin, verify, review (by ``day``, ISO, or ""
    for none), withdraw (with a ``reason``), archive, unarchive, remove (cached responses). Raises Invalid, with the
    code NOT_APPLICABLE if the action applies to none of the kinds, and what the edits raise.
    """
    if action not in KINDS_BY_ACTION:
        raise Invalid(gettext("Choose an action."), code="wrong_action")
    if not keys:
        raise Invalid(gettext("Select at least one row."), code="nothing_chosen")
    chosen = {kind: list(pks) for kind, pks in keys.items() if _applies(kind, action, category)}
    done = ActionResult(skipped=[_count(kind, len(pks)) for kind, pks in keys.items() if kind not in chosen])
    if not chosen:
        names = join_phrases([str(KINDS[kind].many) for kind in keys])
        raise Invalid(capfirst(str(REFUSALS[action]) % {"kinds": names}), code=NOT_APPLICABLE)
    values = _values(action, tags, reason, day)
    for kind, pks in chosen.items():
        if action == "move":
            _move(workspace, kind, pks, category, done, by)
        else:
            change = "tag" if action == "untag" else action
            table = KINDS[kind].edited_as
            done.runs.append(edit_rows(workspace, table, change, pks, values=values, by=by))
    return done


def _values(action: str, tags: Sequence[str], reason: str, day: str) -> dict[str, Any]:
    if action == "review":
        return {"review_by": day}
    if action not in ("tag", "untag"):
        return {"reason": reason}
    if not (clean := knowledge.clean_tags(tags)):
        raise Invalid(gettext("Name at least one tag."), code="wrong_action")
    return {"add" if action == "tag" else "remove": clean}


def _move(workspace: Workspace, kind: str, pks: list[int], category: str, done: ActionResult, by: By) -> None:
    if kind == "knowledge":
        run, done.duplicates = knowledge.recategorise(workspace, pks, category, by=by)
    else:
        values = {"category": category}
        run = edit_rows(workspace, KINDS[kind].edited_as, "assign", pks, values=values, by=by)
    done.runs.append(run)


def _applies(kind: str, action: str, category: str) -> bool:
    return kind in KINDS_BY_ACTION[action] and (action != "move" or category in CATEGORIES[kind].values)


def _count(kind: str, count: int) -> str:
    return str(COUNTED[kind] % {"n": count, "count": f"{count:,}"})


def join_phrases(phrases: Sequence[str]) -> str:
    """Join phrases as in "one, two and three"."""
    if len(phrases) < 2:
        return "".join(phrases)
    return gettext("%(first)s and %(last)s") % {"first": ", ".join(phrases[:-1]), "last": phrases[-1]}


def describe_skipped(done: ActionResult) -> str:
    """Return a sentence for each group of rows that an action skipped, or ""."""
    sentences = []
    if done.skipped:
        sentences.append(
            gettext("Skipped, because it doesn't apply: %(rows)s.") % {"rows": join_phrases(done.skipped)}
        )
    if done.duplicates:
        words = ngettext(
            "%(count)s is unchanged: its category already says so.",
            "%(count)s are unchanged: their category already says so.",
            done.duplicates,
        )
        sentences.append(words % {"count": f"{done.duplicates:,}"})
    return " ".join(sentences)


def as_json_lines(keys: Keys) -> str:
    """Return rows as JSON Lines; secret values are masked."""
    return "".join(f"{json.dumps(document, ensure_ascii=False)}\n" for document in _documents(keys))


def as_csv(keys: Keys) -> str:
    """Return rows as CSV with a header; cells that a spreadsheet would run as formulas are escaped."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    for document in _documents(keys):
        writer.writerow({name: guard(_cell(value)) for name, value in document.items()})
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _documents(keys: Keys) -> Iterator[dict[str, Any]]:
    for kind, pks in keys.items():
        for start in range(0, len(pks), LOADED):
            rows = load(KINDS[kind], pks[start : start + LOADED])
            yield from (_document(kind, rows[pk]) for pk in pks[start : start + LOADED] if pk in rows)


def _document(kind: str, row: Any) -> dict[str, Any]:
    curated = {name: getattr(row, name, None) for name in ("category", "tags", "source")}
    text, source = row_document(kind, row)["text"], curated["source"]
    return row_document(kind, row) | curated | {"text": masked(text), "source": masked(source) if source else source}
