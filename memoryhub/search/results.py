"""Search results as JSON, for the command, REST and MCP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext

from knowledge_app.services.held_rows import unheld
from knowledge_app.services.rows.key_values import living, with_text
from memoryhub.lib.content_check.check import unflagged
from memoryhub.lib.content_check.stand_ins import served_name, served_text
from memoryhub.lib.search.hits import WeightedTerm
from memoryhub.lib.search.passages import passage
from memoryhub.lib.search.query import Query, describe, parse
from memoryhub.lib.search.scoring import explain as explain_score
from memoryhub.lib.secrets import looks_secret
from memoryhub.search import grip as grip_search
from memoryhub.search.correcting import correction_notes, with_corrections
from memoryhub.search.filters import Scope
from memoryhub.search.kinds import KINDS
from memoryhub.search.listing import Listed, newest
from memoryhub.search.ranking import PATIENCE, Hit, RankOptions, SearchResults, find
from sessions_app.models import Entry, Session, Summary, Workspace

MOST = 200


@dataclass(frozen=True)
class Question:
    """A search request. ``recency``: off, floored, grip (``decay`` per hour), or newest (sort by time).

    ``whole``: take up to 20 times longer rather than leave results out. ``as_typed``: correct no words.
    """

    text: str
    kinds: tuple[str, ...] = ()
    limit: int = 20
    recency: str = "off"
    decay: float = 0.001
    match_all: bool = False
    graph: bool = True
    whole: bool = False
    as_typed: bool = False

    @property
    def patience(self) -> int:
        return PATIENCE if self.whole else 1


def answer(scope: Scope, question: Question, *, now: datetime, explain: bool = False) -> dict[str, Any]:
    """Run a search; return ``results``, how the query was ``read``, ``notes`` and ``corrected`` words."""
    query = parse(question.text, now=now, match_all=question.match_all)
    limit = max(0, min(question.limit, MOST))
    if question.recency == "newest" or not query.ranked_terms:
        notes = list(query.notes)
        rows, _ = newest(scope, query, kinds=question.kinds, limit=limit, notes=notes, patience=question.patience)
        if not (query.ranked_terms or query.filters or query.excluded):
            notes.append(gettext("No search words: showing everything"))
        results = [_listed(one, query, for_agent=scope.for_agent) for one in rows]
        return {"query": query.text, "read": describe(query), "corrected": {}, "notes": notes, "results": results}
    wishes = RankOptions(
        question.recency, question.decay, question.graph, patience=question.patience, correct=not question.as_typed
    )
    found = find(scope, query, now=now, kinds=question.kinds, options=wishes, limit=limit)
    document: dict[str, Any] = {
        "query": query.text,
        "read": describe(with_corrections(query, found.corrected)),
        "corrected": found.corrected,
        "notes": [*query.notes, *correction_notes(found.corrected), *found.notes],
        "results": [_result(hit, found, explain=explain, for_agent=scope.for_agent) for hit in found.hits],
    }
    if explain:
        document["added"] = {
            word: [{"word": near, "weight": round(weight, 4)} for near, weight in pairs]
            for word, pairs in found.added.items()
        }
    return document


def _result(hit: Hit, found: SearchResults, *, explain: bool, for_agent: bool) -> dict[str, Any]:
    terms = found.weights_by_kind[hit.kind].terms
    result = _document(hit.kind, hit.row, terms, score=round(hit.score, 6), for_agent=for_agent)
    if hit.kind == "session" and (message := found.messages.get(hit.pk)):
        result |= {"snippet": passage(text_of("entry", message), terms).text, "message_id": message.pk}
    if explain:
        result["explanation"] = explanation(hit, found)
    return result


def _listed(one: Listed, query: Query, *, for_agent: bool) -> dict[str, Any]:
    terms = [WeightedTerm(term.words, term.is_prefix) for term in query.ranked_terms]
    return _document(one.kind, one.row, terms, score=None, for_agent=for_agent)


def _document(
    kind: str, row: Any, terms: Sequence[WeightedTerm], *, score: float | None, for_agent: bool
) -> dict[str, Any]:
    document = row_document(kind, row, for_agent=for_agent)
    found = {"score": score, "snippet": passage(document["text"], terms).text}
    return document | found | ({"source_id": row.source_id, "epoch": row.epoch} if isinstance(row, Entry) else {})


def row_document(kind: str, row: Any, *, for_agent: bool = False) -> dict[str, Any]:
    """Return a row's text (secrets masked), place and time as JSON. ``for_agent``: see ``text_for_agents``."""
    at = time_of(kind, row)
    session = row if kind == "session" else getattr(row, "session", None)
    return {
        "kind": kind,
        "id": row.pk,
        "workspace": workspace_of(kind, row).slug,
        "session": _key_of(session, for_agent=for_agent) if session else None,
        "position": getattr(row, "position", None),
        "occurred_at": at.isoformat() if at else None,
        "text": text_for_agents(kind, row) if for_agent else text_of(kind, row),
    }


def _key_of(session: Session, *, for_agent: bool) -> str:
    return served_name(session.key, "session", session.pk) if for_agent else session.key


def explanation(hit: Hit, found: SearchResults) -> dict[str, Any]:
    """Return every factor of a score as JSON: terms with their IDF, neighbours, author, recency, graph expansions.

    ``cosine``: the similarity of embeddings; 0 where they weren't compared. ``meaning``: what it adds to the score.
    ``semantic_weight``: of semantic matches beside matches of words, 0 to 1.
    """
    scored, term_weights = hit.scored, found.weights_by_kind[hit.kind]
    added = {near: word for word, pairs in found.added.items() for near, _ in pairs}
    typed = {used: typed for typed, used in found.corrected.items()}
    parts = explain_score(scored, term_weights)
    return {
        "terms": [
            {
                "term": part.text,
                "count": part.count,
                "rows": part.frequency,
                "idf": round(part.weight, 4),
                "weight": round(term.weight, 4),
                "score": round(part.score, 4),
                "from_neighbours": round(part.weight * part.from_neighbours, 4),
                **({"added_for": added[part.text]} if part.text in added else {}),
                **({"corrected_from": typed[part.text]} if part.text in typed else {}),
                **({"is_exact": term.is_literal} if term.literal else {}),
            }
            for part, term in zip(parts, term_weights.terms, strict=True)
        ],
        "in_a_row": scored.own.bigrams,
        "author": round(scored.factors.author, 4),
        "recency": round(scored.factors.recency, 4),
        "speaker": round(scored.factors.speaker, 4),
        "period": round(scored.factors.period, 4),
        "coverage": round(scored.coverage, 4),
        "cosine": round(scored.cosine, 4),
        "meaning": round(scored.meaning, 4),
        "semantic_weight": round(found.semantic_weight, 4),
    }


def text_of(kind: str, row: Any) -> str:
    """Return the searched text of a row, with secret values masked."""
    known = KINDS[kind]
    if kind == "entry":
        calls = [call.get("function", {}) for call in row.tool_calls if isinstance(call, dict)]
        called = [f"{call.get('name', '')} {call.get('arguments', '')}" for call in calls if isinstance(call, dict)]
        return "\n".join([*([row.content] if row.content else []), *called])
    if kind == "key_value":
        is_masked = row.is_secret or looks_secret(row.key, row.value)
        return f"{row.key} = {'••••' if is_masked else row.value}"
    return "\n".join(text for name in known.texts if (text := getattr(row, name)))


def text_for_agents(kind: str, row: Any) -> str:
    """Return the searched text of a row without what the content check flags in texts of files that aren't held."""
    if isinstance(row, Summary):
        return summary_for_agents(row)
    if isinstance(row, Session):
        texts = (served_text(row.title), _key_of(row, for_agent=True), unflagged(row.summary_text), row.note)
        return "\n".join(text for text in texts if text)
    return text_of(kind, row)


def summary_for_agents(summary: Summary) -> str:
    """Return a summary's text; one that an agent's program wrote without lines that the content check flags."""
    is_own = summary.source_id or summary.method == Summary.Method.IMPORTED
    return unflagged(summary.content) if is_own else summary.content


def time_of(kind: str, row: Any) -> datetime | None:
    """Return the time by which rows of a kind are ordered."""
    found = row
    for name in KINDS[kind].time.split("__"):
        found = getattr(found, name)
    return found if isinstance(found, datetime) else None


def workspace_of(kind: str, row: Any) -> Workspace:
    found = row.document.workspace if kind == "document" else row.workspace
    return found if isinstance(found, Workspace) else Workspace()


def answer_as_grid(workspace: Workspace, query: str, *, limit: int) -> dict[str, Any]:
    """Return the key-values whose key or value contains the query, by key (grid's memory_search).

    Masked values are not searched; held ones are left out.
    """
    rows = with_text(unheld(living(workspace)), query).select_related("workspace").order_by("key", "id")
    terms = [WeightedTerm((query,))] if query else []
    results = [
        _document("key_value", row, terms, score=None, for_agent=True) for row in rows[: max(0, min(limit, MOST))]
    ]
    return {"query": query, "mode": "grid", "read": [], "notes": [], "results": results}


def answer_as_grip(
    workspace: Workspace, query: str, *, mode: str, category: str, decay: float, now: datetime, limit: int
) -> dict[str, Any]:
    """Return the lines that Grip's own search would find, in its order."""
    if mode == "grip-history":
        hits = grip_search.search_history(workspace, query, decay=decay, now=now, limit=limit)
    elif mode == "grip-memory":
        hits = grip_search.search_memory(workspace, query, category=category, limit=limit)
    else:
        hits = grip_search.search_knowledge(workspace, query, category=category, limit=limit)
    results = [
        {
            "kind": hit.kind,
            "id": hit.id,
            "workspace": workspace.slug,
            "session": hit.session_key,
            "position": hit.position,
            "score": hit.score,
            "snippet": hit.line,
            "occurred_at": hit.occurred_at.isoformat() if hit.occurred_at else None,
            "text": hit.line,
        }
        for hit in hits
    ]
    return {"query": query, "mode": mode, "notes": [], "results": results}
