"""``check_memory``: verify the invariants of all tables, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from memoryhub.integrity import conversations, curation, database, decisions, documents, runs

Finding = tuple[str, str]  # what is wrong, where
Check = Callable[[], tuple[int, Iterable[Finding]]]
MAX_FINDINGS = 100  # for each invariant

CHECKS: dict[str, Check] = {
    "database.integrity": database.check_integrity,
    "append_only.triggers": database.check_triggers,
    "append_only.guard": database.check_guard,
    "search.indexes": database.check_search,
    "search.vectors": curation.check_vectors,
    "tenancy": database.check_tenancy,
    "entries.positions": conversations.check_positions,
    "sessions.pointer": conversations.check_pointers,
    "sessions.length": conversations.check_lengths,
    "sessions.totals": conversations.check_totals,
    "sessions.sources": conversations.check_sources,
    "daily.totals": conversations.check_days,
    "daily.workspace": conversations.check_workspace_days,
    "runs.tile": runs.check_runs,
    "runs.one_running": runs.check_running,
    "runs.compressions": runs.check_compressions,
    "appends.receipts": runs.check_receipts,
    "summaries.links": conversations.check_summaries,
    "revisions.chain": documents.check_chain,
    "revisions.hash": documents.check_hashes,
    "documents.head": documents.check_heads,
    "documents.written": documents.check_written,
    "facts.in_step": documents.check_facts,
    "facts.origins": documents.check_origins,
    "held.bases": documents.check_held,
    "held.decisions": decisions.check_decisions,
    "held.rows": decisions.check_held_rows,
    "forgotten.receipts": decisions.check_receipts,
    "history.positions": documents.check_history,
    "knowledge.identity": curation.check_identities,
    "key_values.secrets": curation.check_secrets,
    "rows.history": curation.check_histories,
    "graph.terms": curation.check_graph,
    "audit.chain": database.check_audit,
    "audit.revisions": documents.check_audit,
}


@dataclass(frozen=True)
class Broken:
    """A place where an invariant doesn't hold."""

    invariant: str
    what: str
    where: str


@dataclass
class CheckResult:
    """``checked``: the number of rows by invariant. ``warnings``: about the installation, not the data."""

    checked: dict[str, int] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def check_memory(progress: Callable[[str], None] = lambda _name: None) -> CheckResult:
    """Verify every invariant. Reads only; memory use doesn't grow with the number of rows."""
    result = CheckResult(warnings=database.warnings())
    for name, check in CHECKS.items():
        progress(name)
        count, findings = check()
        result.checked[name] = count
        for number, (what, where) in enumerate(findings):
            if number == MAX_FINDINGS:
                break
            result.broken.append(Broken(name, what, where))
    return result
