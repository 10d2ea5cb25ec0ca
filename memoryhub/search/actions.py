"""Doing one thing with what a search found: to the rows of the kinds that it fits, and saying which it left out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext, ngettext, ngettext_lazy

from knowledge_app.models import KnowledgeEntry, Observation
from knowledge_app.services.rows import knowledge
from knowledge_app.services.rows.edits import NothingChosen, edit_rows
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.search.query import Query
from memoryhub.lib.tables.formulas import guard
from memoryhub.search.filters import Scope, filtered_kinds, load
from memoryhub.search.kinds import KINDS
from memoryhub.search.results import row_document
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By

Keys = Mapping[str, Sequence[int]]  # of rows, by kind
FITS = {
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
    "session": ngettext_lazy("%(count)s session", "%(count)s sessions", "n"),
    "cached": ngettext_lazy("%(count)s cached response", "%(count)s cached responses", "n"),
}
LOADED = 500  # rows at once for a file
COLUMNS = ("kind", "id", "workspace", "session", "position", "occurred_at", "category", "tags", "source", "text")


class WrongAction(MemoryHubError):
    """What is to be done isn't said, or fits none of the rows chosen."""

    code = "wrong_action"


@dataclass
class Done:
    """What an action came to: the runs of its edits, each to be undone, and what it left out.

    ``left``: a phrase for each kind that the action doesn't fit. ``behind``: entries that the category has already.
    """

    runs: list[Run] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    behind: int = 0


def matching_keys(scope: Scope, query: Query, *, kinds: Iterable[str] = ()) -> dict[str, list[int]]:
    """Return the keys of all rows that fit a query, by kind."""
    found = {
        fitting.kind.name: list(fitting.matches().order_by("pk").values_list("pk", flat=True))
        for fitting in filtered_kinds(scope, query, kinds)
    }
    return {kind: pks for kind, pks in found.items() if pks}


def keep_within(scope: Scope, keys: Keys) -> dict[str, list[int]]:
    """Return of some keys those of rows that the scope holds, so that a foreign one is as good as none."""
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
) -> Done:
    """Do one thing with rows of a workspace; kinds that it doesn't fit are left out, and named in the answer.

    ``action``: move (to ``category``), tag and untag (``tags``), pin, unpin, verify, review (by ``day``, ISO, "" for
    none), withdraw (for a ``reason``), archive, unarchive, or remove (cached responses). Raises WrongAction,
    NothingChosen, and what the edits themselves raise.
    """
    if action not in FITS:
        raise WrongAction(gettext("Choose what to do with them."))
    if not keys:
        raise NothingChosen(gettext("Choose at least one row."))
    fitting = {kind: list(pks) for kind, pks in keys.items() if _fits(kind, action, category)}
    done = Done(left=[_count(kind, len(pks)) for kind, pks in keys.items() if kind not in fitting])
    if not fitting:
        raise WrongAction(gettext("That can't be done with %(rows)s.") % {"rows": _listed(done.left)})
    values = _values(action, tags, reason, day)
    for kind, pks in fitting.items():
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
        raise WrongAction(gettext("Name at least one tag."))
    return {"add" if action == "tag" else "remove": clean}


def _move(workspace: Workspace, kind: str, pks: list[int], category: str, done: Done, by: By) -> None:
    if kind == "knowledge":
        run, done.behind = knowledge.recategorise(workspace, pks, category, by=by)
    else:
        values = {"category": category}
        run = edit_rows(workspace, KINDS[kind].edited_as, "assign", pks, values=values, by=by)
    done.runs.append(run)


def _fits(kind: str, action: str, category: str) -> bool:
    return kind in FITS[action] and (action != "move" or category in CATEGORIES[kind].values)


def _count(kind: str, count: int) -> str:
    return str(COUNTED[kind] % {"n": count, "count": f"{count:,}"})


def _listed(phrases: Sequence[str]) -> str:
    if len(phrases) < 2:
        return "".join(phrases)
    return gettext("%(first)s and %(last)s") % {"first": ", ".join(phrases[:-1]), "last": phrases[-1]}


def words_left(done: Done) -> str:
    """Return in words what an action left out and why, "" for nothing."""
    said = []
    if done.left:
        said.append(gettext("Left out, since it doesn't fit them: %(rows)s.") % {"rows": _listed(done.left)})
    if done.behind:
        words = ngettext(
            "%(count)s stays: the category says that already.",
            "%(count)s stay: the category says that already.",
            done.behind,
        )
        said.append(words % {"count": f"{done.behind:,}"})
    return " ".join(said)


def as_json_lines(keys: Keys) -> str:
    """Return rows as JSON Lines, one document a row; masked values stay masked."""
    return "".join(f"{json.dumps(document, ensure_ascii=False)}\n" for document in _documents(keys))


def as_csv(keys: Keys) -> str:
    """Return rows as a table with a heading; no cell is one that a spreadsheet would run."""
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
    return row_document(kind, row) | curated
