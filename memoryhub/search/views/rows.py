"""Search results as page rows: title, link, excerpt, badges, explanation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.lib.http.pagination import encode_cursor
from memoryhub.lib.masked_text import masked
from memoryhub.lib.search.hits import WeightedTerm
from memoryhub.lib.search.passages import Passage, highlight, passage
from memoryhub.search.grip import GripHit
from memoryhub.search.kinds import KINDS, Kind
from memoryhub.search.listing import Listed
from memoryhub.search.ranking import Hit, SearchResults
from memoryhub.search.results import explanation, text_of, time_of, workspace_of
from sessions_app.models import Workspace
from sessions_app.services.transcript import PAGE_ENTRIES

PASSAGE_CHARS = 300
MAX_SCANNED = 50_000  # characters of a text that are searched for secrets as a whole
TITLE_CHARS = 120
ROLES: dict[str, Promise | str] = {
    "user": _("User"),
    "assistant": _("Assistant"),
    "tool": _("Tool"),
    "system": _("System"),
}
CATEGORIES: dict[str, Promise | str] = {
    "user_preference": _("user preference"),
    "project_decision": _("project decision"),
    "error_pattern": _("error pattern"),
    "system_behavior": _("system behavior"),
    "learned_fact": _("learned fact"),
    "finding": _("finding"),
    "insight": _("insight"),
    "lesson": _("lesson"),
}


@dataclass(frozen=True)
class ResultRow:
    """One result. ``badges``: (text, tone). ``why``: the explanation of its score, if it has one.

    ``message_pk``, ``speaker`` and ``message_url``: of a session, the message that the passage quotes.
    ``session_url``: the search in the message's session, if only its best are listed; ``session_count``: its matches.
    """

    kind: Kind
    label: str
    pk: int
    title: str
    title_pieces: list[tuple[str, bool]]
    url: str
    at: datetime | None
    passage: Passage
    workspace: Workspace
    where: str = ""
    where_url: str = ""
    badges: list[tuple[str, str]] = field(default_factory=list)
    why: dict[str, Any] | None = None
    session_url: str = ""
    session_count: int = 0
    message_pk: int = 0
    speaker: str = ""
    message_url: str = ""

    @property
    def key(self) -> str:
        """Return the row's checkbox value."""
        return f"{self.kind.name}:{self.pk}"

    @property
    def pieces(self) -> list[tuple[str, bool]]:
        """Return the passage as (text, is_hit) pieces, with invisible characters shown."""
        return visible(self.passage.pieces)

    @property
    def scored_kind(self) -> Kind:
        """Return the kind whose rows were counted for the score."""
        return KINDS["entry"] if self.message_pk else self.kind

    @property
    def is_entry(self) -> bool:
        return self.kind.name == "entry"


def searched_text(kind: str, row: Any) -> str:
    """Return a row's text with secrets masked; of a long one, ``visible`` masks what is shown."""
    text = text_of(kind, row)
    return masked(text) if len(text) <= MAX_SCANNED else text


def visible(pieces: Sequence[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Mask secrets in pieces of text, and show invisible and bidirectional control characters."""
    return [(masked(text), is_hit) for text, is_hit in pieces]


def shown_hit(hit: Hit, found: SearchResults) -> ResultRow:
    term_weights = found.weights_by_kind[hit.kind]
    why = explanation(hit, found)
    why |= {
        "score": hit.score,
        "from_meaning": hit.scored.meaning,
        "is_merged": len(found.weights_by_kind) > 1,
        "near": _near(hit),
    }
    why["factors"] = _factors(why)
    row = _shown(hit.kind, hit.row, term_weights.terms, why)
    message = found.messages.get(hit.pk) if hit.kind == "session" else None
    if message is None:
        return row
    why["near"] = "meaning" if why["near"] == "meaning" else ""
    quoted = passage(searched_text("entry", message), term_weights.terms, length=PASSAGE_CHARS)
    speaker, url = PLACES["entry"](message, row.workspace.slug)
    return replace(row, passage=quoted, message_pk=message.pk, speaker=speaker, message_url=url)


def shown_listed(one: Listed, terms: Sequence[WeightedTerm]) -> ResultRow:
    return _shown(one.kind, one.row, terms, None)


def _near(hit: Hit) -> str:
    """Return why a hit without any of the words was found: "meaning", "place" (its neighbours match), or ""."""
    if any(hit.scored.own.shares.values()):
        return ""
    return "place" if any(hit.scored.shares.values()) else "meaning"


def _factors(why: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the factors of a score as (reason, factor)."""
    found = []
    if why["in_a_row"]:
        found.append((gettext("words are adjacent, as in the query"), 1 + 0.15 * why["in_a_row"]))
    if not math.isclose(why["author"], 1.0):
        found.append((gettext("the query names its author"), why["author"]))
    if not math.isclose(why["speaker"], 1.0):
        said = gettext("a user said it") if why["speaker"] > 1 else gettext("it is a long answer")
        found.append((said, why["speaker"]))
    if not math.isclose(why["period"], 1.0):
        found.append((gettext("it is from the time in the query"), why["period"]))
    if not math.isclose(why["recency"], 1.0):
        found.append((gettext("its age"), why["recency"]))
    return found


def _shown(kind: str, row: Any, terms: Sequence[WeightedTerm], why: dict[str, Any] | None) -> ResultRow:
    workspace = workspace_of(kind, row)
    title, url = PLACES[kind](row, workspace.slug)
    where, where_url = _where(kind, row, workspace)
    return ResultRow(
        kind=KINDS[kind],
        label=str(row.get_kind_display() if kind == "entry" else KINDS[kind].one),
        pk=row.pk,
        title=masked(title)[:TITLE_CHARS],
        title_pieces=visible(highlight(masked(title)[:TITLE_CHARS], terms)),
        url=url,
        at=time_of(kind, row),
        passage=passage(searched_text(kind, row), terms, length=PASSAGE_CHARS),
        workspace=workspace,
        where=where,
        where_url=where_url,
        badges=_badges(kind, row),
        why=why,
    )


def _where(kind: str, row: Any, workspace: Workspace) -> tuple[str, str]:
    """Return the title and URL of a row's session, or empty strings."""
    session = getattr(row, "session", None) if KINDS[kind].session else None
    if session is None:
        return "", ""
    return str(session), reverse("sessions:detail", args=[workspace.slug, session.pk])


def _badges(kind: str, row: Any) -> list[tuple[str, str]]:
    badges = [(category_words(str(row.category)), "")] if getattr(row, "category", "") else []
    if getattr(row, "pinned", False):
        badges.append((gettext("pinned"), "accent"))
    if kind == "key_value" and row.is_secret:
        badges.append((gettext("masked"), "warn"))
    if getattr(row, "withdrawn_at", None) or getattr(row, "died_id", None):
        badges.append((gettext("withdrawn"), "warn"))
    if getattr(row, "hold", None):
        badges.append((gettext("held for review"), "warn"))
    badges += [(str(tag), "") for tag in getattr(row, "tags", [])[:8]]
    return badges + ([(masked(str(row.source))[:60], "source")] if getattr(row, "source", "") else [])


def category_words(category: str) -> str:
    """Return a category in the user's language; categories that agents invented stay as they are."""
    return str(CATEGORIES.get(category, category.replace("_", " ")))


def _entry(row: Any, slug: str) -> tuple[str, str]:
    who = row.name or ROLES.get(row.role) or str(row.role).capitalize()
    return f"{who} #{row.position}", reverse("sessions:entry", args=[slug, row.pk])


def _summary(row: Any, slug: str) -> tuple[str, str]:
    start = row.first_position - row.first_position % PAGE_ENTRIES
    page = reverse("sessions:detail", args=[slug, row.session_id])
    positions = {"first": row.first_position, "last": row.last_position}
    return gettext("Summary of #%(first)s to #%(last)s") % positions, f"{page}?epoch={row.epoch}&from={start}"


def _memory(row: Any, slug: str) -> tuple[str, str]:
    title = " · ".join(part for part in (row.document.name, row.section) if part)
    return title, reverse("documents:fact", args=[slug, row.pk])


def _document(row: Any, slug: str) -> tuple[str, str]:
    return row.document.name, reverse("documents:document", args=[slug, row.document_id])


def _history(row: Any, slug: str) -> tuple[str, str]:
    title = gettext("History #%(position)s") % {"position": row.position}
    return title, history_url(slug, row.pk, row.position)


def history_url(slug: str, pk: int, position: int) -> str:
    """Return the URL of the history page that starts with an entry."""
    return f"{reverse('documents:history', args=[slug])}?after={encode_cursor([position + 1])}#history-{pk}"


def _page(name: str, title: Callable[[Any], str]) -> Callable[[Any, str], tuple[str, str]]:
    return lambda row, slug: (title(row), reverse(name, args=[slug, row.pk]))


PLACES: dict[str, Callable[[Any, str], tuple[str, str]]] = {
    "entry": _entry,
    "summary": _summary,
    "memory": _memory,
    "document": _document,
    "history": _history,
    "knowledge": _page("knowledge:knowledge-entry", lambda _row: gettext("Knowledge")),
    "observation": _page("knowledge:observation", lambda row: row.get_category_display()),
    "key_value": _page("knowledge:key-value", lambda row: row.key or gettext("(empty key)")),
    "session": _page("sessions:detail", str),
    "cached": _page("knowledge:cached-response", lambda row: row.preview or row.key),
}


@dataclass(frozen=True)
class GripLine:
    """A line that Grip's search returns, with Grip's score and the URL of its row ("" if it has none)."""

    kind: Kind
    line: str
    score: float | None
    at: datetime | None
    label: str
    url: str


def shown_grip(hit: GripHit, slug: str, documents: Mapping[int, int]) -> GripLine:
    """Return a Grip hit as a row. ``documents``: the document of each fact among the hits."""
    url = _grip_url(hit, slug, documents)
    return GripLine(KINDS[hit.kind], masked(hit.line), hit.score, hit.occurred_at, _grip_label(hit), url)


def _grip_label(hit: GripHit) -> str:
    if hit.kind == "memory":
        return gettext("MEMORY.md, line %(line)s") % {"line": hit.position}
    if hit.kind == "history":
        return "HISTORY.md" if hit.position is None else f"HISTORY.md #{hit.position}"
    return gettext("Knowledge")


def _grip_url(hit: GripHit, slug: str, documents: Mapping[int, int]) -> str:
    """Return the URL of a line's row; "" for a history's heading and for a fact removed in the meantime."""
    if hit.id is None or (hit.is_fact and hit.id not in documents):
        return ""
    if hit.kind == "history":
        return "" if hit.position is None else history_url(slug, hit.id, hit.position)
    if hit.is_fact:
        return reverse("documents:fact", args=[slug, hit.id])
    page = "knowledge:knowledge-entry" if hit.kind == "knowledge" else "documents:document"
    return reverse(page, args=[slug, hit.id])
