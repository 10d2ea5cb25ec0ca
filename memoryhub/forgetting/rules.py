"""Find what an erasure changes in a row. Reads only.

Every text, JSON and binary column of every table that belongs to a workspace is searched, with the exceptions below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_
from secrets import randbelow
from typing import Any

from django.db.models import BinaryField, CharField, Field, ForeignKey, JSONField, Model, TextField
from django.utils.translation import gettext_noop

from knowledge_app.models import (
    CachedResponse,
    Concern,
    Confirmation,
    EditedRow,
    Fact,
    HeldChange,
    HistoryEntry,
    KeyValue,
    KnowledgeEntry,
    MemoryDocument,
    MemoryRevision,
    Observation,
    Term,
)
from knowledge_app.services.documents.revisions import content_hash
from knowledge_app.services.rows.derived_columns import derive
from knowledge_app.services.rows.edit_tables import CONCERNS
from memoryhub.forgetting.matching import Redaction, is_programs_name, texts_in
from memoryhub.forgetting.sources import TABLES, Place
from memoryhub.lib.layouts.records import text_hash
from memoryhub.lib.text.forgotten import MARK
from memoryhub.models import ApiToken, IdempotentCall, Job, RecentSearch, SavedSearch
from sessions_app.models import (
    AuditRecord,
    DeletedSession,
    Entry,
    ImportProblem,
    ImportReport,
    Run,
    Session,
    SourceFile,
)
from sessions_app.services.audit_chain import audit_mac
from sessions_app.services.file_values import KEY as FILE_VALUES
from sessions_app.services.lifecycle import forgotten_key, redacted_key
from sessions_app.services.parsing import ROLES

GO_AS_ROWS = (
    KeyValue,
    CachedResponse,
    Term,
    Concern,
    RecentSearch,
    SavedSearch,
)  # a redacted row would be wrong
GO_FOR_A_PERSON = (KnowledgeEntry, Observation, Confirmation)
HAVE_SOURCES = (KnowledgeEntry, Observation, Confirmation)
OF_MEMORY = (MemoryRevision, Fact, HeldChange, Run, IdempotentCall)
_STRUCTURE = """
role kind source_hash content_hash body_hash before_hash after_hash path_hash proposed_hash
token_method channel lease_owner unique_key home error_code model method provider base_url fingerprint table
other_table action object_kind object_id layout layout_version wanted_layout author_kind actor_kind history_type
digests counts decided_parts added updated unchanged identity text_hash stamp knowledge_mark prefix token_hash
request_hash scopes mac key_check findings files resource redirect_uri code_hash code_challenge refresh_key
refresh_hash
"""
STRUCTURE = frozenset(_STRUCTURE.split())  # columns that the hub itself writes, without user text
OF_AGENTS = ((Entry, "role"), (CachedResponse, "model"))  # columns of these names that agents write
KEYED = frozenset(
    ("before", "after", "corrected", "options", "proposal", "detail", "workspaces")
)  # JSON whose keys are the hub's own
OWN_OPTIONS = frozenset(  # of runs and jobs, whose values are the hub's own
    ("table", "action", "of_action", "method", "layout", "name", "seen")
)
ASIDE = frozenset(("corrected", "withdrawn_reason"))  # notes about a row, not its content
NOTHING = Redaction()
EXACT_TABLES = ("key_values", "cached", CONCERNS)  # of edits, which are deleted with their rows
PERSON_TABLES = ("knowledge", "observations")
EXAMPLE_CHARS = 160
IDS = ("content_id", "uid", "idempotency_key")  # unique beside a foreign key
NAMES = (  # names of tables, as the filter ``words`` shows them
    gettext_noop("Access records"),
    gettext_noop("Api tokens"),
    gettext_noop("Append receipts"),
    gettext_noop("Audit records"),
    gettext_noop("Cached responses"),
    gettext_noop("Findings"),
    gettext_noop("Confirmations"),
    gettext_noop("Deleted sessions"),
    gettext_noop("Earlier states of key-values"),
    gettext_noop("Earlier states of knowledge entries"),
    gettext_noop("Earlier states of observations"),
    gettext_noop("Edited rows"),
    gettext_noop("Facts"),
    gettext_noop("Forgotten"),
    gettext_noop("Held changes"),
    gettext_noop("Held rows"),
    gettext_noop("History entries"),
    gettext_noop("Idempotent calls"),
    gettext_noop("Import problems"),
    gettext_noop("Import reports"),
    gettext_noop("Invitations"),
    gettext_noop("Jobs"),
    gettext_noop("Key-values"),
    gettext_noop("Knowledge entries"),
    gettext_noop("Log entries"),
    gettext_noop("Memory documents"),
    gettext_noop("Memory revisions"),
    gettext_noop("OAuth clients"),
    gettext_noop("Observations"),
    gettext_noop("Recent searches"),
    gettext_noop("Runs"),
    gettext_noop("Saved searches"),
    gettext_noop("Semantic graphs"),
    gettext_noop("Sessions"),
    gettext_noop("Source files"),
    gettext_noop("Summaries"),
    gettext_noop("Sync states"),
    gettext_noop("Terms"),
    gettext_noop("Webhook deliveries"),
)


@dataclass(frozen=True)
class Rules:
    """What to search for: in all tables, only in documents and facts, and where the hub writes session keys.

    ``rows``: those of which a source is erased; ``names``: what these sources are or were called. ``sessions``:
    deleted with their messages. ``everywhere``: also rows of no workspace.
    """

    redaction: Redaction = NOTHING
    in_memory: Redaction = NOTHING
    in_keys: Redaction = NOTHING
    is_person: bool = False
    sources: frozenset[str] = frozenset()
    rows: frozenset[Place] = frozenset()
    names: frozenset[str] = frozenset()
    sessions: tuple[Session, ...] = ()
    everywhere: bool = False

    def of(self, model: type[Model]) -> Redaction:
        """Return the redaction for a table."""
        own = [self.in_memory] if issubclass(model, OF_MEMORY) else []
        own += [self.in_keys] if model in HOLD_KEYS else []
        return reduce(or_, [one for one in own if one is not NOTHING], self.redaction)

    @property
    def has_sources(self) -> bool:
        return bool(self.sources or self.rows or self.sessions)

    @property
    def session_ids(self) -> frozenset[int]:
        return frozenset(session.pk for session in self.sessions)


HOLD_KEYS = (
    AuditRecord,
    Session,
    DeletedSession,
    SourceFile,
    ImportProblem,
    ImportReport,
    Run,
    IdempotentCall,
    Job,
)


@dataclass(frozen=True)
class Affected:
    """A row and its new values (None: delete it), with an excerpt as an example."""

    row: Model
    values: dict[str, Any] | None
    example: str = ""


@lru_cache
def text_columns(model: type[Model]) -> tuple[list[Field[Any, Any]], list[Field[Any, Any]]]:
    """Return a table's text and JSON columns, and its binary columns."""
    texts: list[Field[Any, Any]] = []
    raws: list[Field[Any, Any]] = []
    for column in model._meta.concrete_fields:
        is_structure = column.name in STRUCTURE and (model, column.name) not in OF_AGENTS
        if is_structure or column.choices or isinstance(column, ForeignKey):
            continue
        if isinstance(column, CharField | TextField | JSONField):
            texts.append(column)
        elif isinstance(column, BinaryField) and column.name == "raw":
            raws.append(column)
    return texts, raws


def find_changes(row: Model, rules: Rules) -> Affected | None:
    """Return what an erasure changes in a row; None if nothing."""
    if _is_from_erased_source(row, rules):
        return Affected(row, None, brief(str(getattr(row, "content", ""))))
    if isinstance(row, IdempotentCall) and not (rules.sources | rules.names).isdisjoint(texts_in(row.answer)):
        return Affected(row, {"answer": MARK})
    values = _changed(row, rules.of(base_of(row)))
    if _is_history_of(row, rules):
        values["content"] = MARK
    values |= _without_title(row, rules) | _without_session(row, rules)
    if not values:
        return None
    base = base_of(row)
    example = next((brief(str(getattr(row, name))) for name in values if isinstance(values[name], str)), "")
    says_it = values.keys() - ASIDE
    if says_it and (issubclass(base, GO_AS_ROWS) or (rules.is_person and issubclass(base, GO_FOR_A_PERSON))):
        return Affected(row, None, "" if issubclass(base, KeyValue) else example)
    if isinstance(row, EditedRow) and (row.table in EXACT_TABLES or (rules.is_person and row.table in PERSON_TABLES)):
        return Affected(row, None, "")
    return Affected(row, values | _dependent_values(row, values), example)


def texts_of(row: Model) -> Iterator[str]:
    """Yield every text of a row that is searched."""
    texts, raws = text_columns(type(row))
    for column in texts:
        yield from texts_in(getattr(row, column.name))
    for column in raws:
        if value := getattr(row, column.name):
            yield bytes(value).decode("utf-8", errors="replace")


def base_of(row: Model) -> type[Model]:
    """Return the model that a history model tracks, or the row's own model."""
    return getattr(row, "instance_type", type(row))


def _is_from_erased_source(row: Model, rules: Rules) -> bool:
    if isinstance(row, RecentSearch | SavedSearch):
        return "session:" in row.query and rules.in_keys.mentions(row.query)
    if not issubclass(base_of(row), (*HAVE_SOURCES, HeldChange)):
        return False
    table, _ = TABLES.get(base_of(row), ("", ""))
    is_from = (table, getattr(row, "id", 0)) in rules.rows or getattr(row, "source", "").strip() in rules.sources
    return is_from or _is_of_run(row, rules)


def _is_of_run(row: Model, rules: Rules) -> bool:
    """Tell whether a run of an erased session wrote a row."""
    run: Run | None = getattr(row, "run", None) if rules.sessions else None
    return run is not None and run.session_id in rules.session_ids


def _is_history_of(row: Model, rules: Rules) -> bool:
    """Tell whether a history entry is about an erased session or from an erased source."""
    if not isinstance(row, HistoryEntry) or row.content == MARK:
        return False
    is_of_session = row.session_id in rules.session_ids or _is_of_run(row, rules)
    return is_of_session or bool(row.source and row.source in rules.sources)


def _without_session(row: Model, rules: Rules) -> dict[str, Any]:
    """Return the changes that remove an erased session's key from reasons, and what its runs were asked for.

    Also the texts of which extractions were requested from an erased source, and what the model replied.
    """
    if isinstance(row, Run) and row.options.get("source") in rules.sources:
        return {"options": row.options | {"text": "", "source": ""}, "proposal": {}, "error": ""}
    if isinstance(row, MemoryRevision) and rules.in_keys.mentions(row.reason):
        return {"reason": rules.in_keys.text(row.reason)}
    if isinstance(row, Run) and row.session_id in rules.session_ids:
        kept = {name: item for name, item in row.options.items() if name in OWN_OPTIONS or isinstance(item, bool)}
        return {"options": kept} if kept != row.options else {}
    return {}


def _without_title(row: Model, rules: Rules) -> dict[str, Any]:
    """Return the changes that remove the title that a file gave to a fork or subagent of an erased session.

    It may quote the session.
    """
    if not rules.sessions:
        return {}
    if isinstance(row, SourceFile) and row.session and _may_quote(row.session, rules):
        known = row.extra.get(FILE_VALUES, {})
        return {"extra": row.extra | {FILE_VALUES: known | {"title": ""}}} if known.get("title") else {}
    if isinstance(row, Session) and row.title and _may_quote(row, rules):
        titles = [file.extra.get(FILE_VALUES, {}).get("title") for file in SourceFile.objects.filter(session=row)]
        return {"title": ""} if row.title in titles else {}
    return {}


def _may_quote(session: Session, rules: Rules) -> bool:
    """Tell whether a session is a fork of an erased one, a fork of such a fork, or a subagent of one of these."""
    seen = set()
    while (origin := session.forked_from or session.parent) and session.pk not in seen:
        seen.add(session.pk)
        session = origin
        if session.pk in rules.session_ids:
            return True
    return False


def _changed(row: Model, redaction: Redaction) -> dict[str, Any]:
    """Return the redacted values of a row's affected columns."""
    texts, raws = text_columns(type(row))
    changed: dict[str, Any] = {}
    for column in texts:
        value = getattr(row, column.name)
        if isinstance(row, MemoryDocument) and column.name in ("name", "path") and is_programs_name(value):
            continue
        if column.name == "role" and value in ROLES:
            continue
        if value and redaction.mentions(value) and (new := _redacted(row, column, value, redaction)) != value:
            changed[column.name] = new
    for column in raws:
        value = getattr(row, column.name)
        if value and redaction.mentions(bytes(value).decode("utf-8", errors="replace")):
            changed[column.name] = None if column.null else b""
    return changed


def _redacted(row: Model, column: Field[Any, Any], value: Any, redaction: Redaction) -> Any:
    """Return a redacted value that fits its column."""
    if column.name == "options" and isinstance(value, dict):
        return {name: _redacted_option(name, item, redaction) for name, item in value.items()}
    new = redaction.value(value, keys=column.name not in KEYED)
    if isinstance(column, CharField) and isinstance(new, str):
        is_once = column.unique or column.name in IDS or (isinstance(row, ApiToken) and column.name == "name")
        new = _unused_name(row) if is_once else new
        new = new[: column.max_length]
    return new


def _unused_name(row: Model) -> str:
    """Return a name for a row whose own is erased. An agent can't guess it, and so can't have taken it before."""
    return f"forgotten-{row.pk}{randbelow(10**9):09}"


def _redacted_option(name: str, value: Any, redaction: Redaction) -> Any:
    if name in OWN_OPTIONS:
        return value
    if name == "actor":
        kind, *names = value
        return [kind, *redaction.value(names)]
    return redaction.value(value, keys=False)


def _dependent_values(row: Model, values: dict[str, Any]) -> dict[str, Any]:
    """Return dependent values that change too: hashes, derived columns, keys."""
    if isinstance(row, MemoryRevision) and "content" in values:
        return {"content_hash": content_hash(values["content"]), "raw": None}
    if isinstance(row, HistoryEntry) and "content" in values:
        return {"source_hash": text_hash(values["content"])}
    if isinstance(row, HeldChange) and "proposed" in values:
        return {"proposed_hash": content_hash(values["proposed"]), "raw": None}
    if isinstance(row, MemoryDocument) and "name" in values:
        return {"name": f"{_unused_name(row)}.md", "path": ""}
    if isinstance(row, MemoryDocument) and "path" in values:
        return {"path": ""}  # else the hub would write a file of the redacted name
    if isinstance(row, Session) and "key" in values:
        key = f"{redacted_key(row.workspace, row.key)}-{row.pk}"  # its agent may open it again
        return {"key": key, "channel": "forgotten"}
    if isinstance(row, DeletedSession) and "key" in values:
        return {"key": forgotten_key(row.workspace, row.key), "is_forgotten": True}
    return _derived_values(row, values)


def _derived_values(row: Model, values: dict[str, Any]) -> dict[str, Any]:
    if hasattr(row, "identity") or isinstance(row, AuditRecord):
        for name, value in values.items():
            setattr(row, name, value)
    if isinstance(row, AuditRecord):
        return {"mac": audit_mac(row)}
    if hasattr(row, "identity"):
        return {name: getattr(row, name) for name in derive(row)} or {"identity": ""}
    return {}


def brief(text: str) -> str:
    """Return the start of a text on one line, as an example."""
    line = " ".join(text.split())
    return line if len(line) <= EXAMPLE_CHARS else f"{line[:EXAMPLE_CHARS]}…"
