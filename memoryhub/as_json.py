"""Rows as the JSON that commands print."""

from __future__ import annotations

from typing import Any

from knowledge_app.models import Forgotten, KnowledgeEntry, Observation
from knowledge_app.services.held_rows import held_fields
from memoryhub.lib.import_counts import ImportCounts
from memoryhub.lib.layouts.records import DetectedLayout
from sessions_app.models import AuditRecord, Run, Session, SourceFolder, Workspace


def folder_json(folder: SourceFolder) -> dict[str, Any]:
    """Return a further folder of a workspace as JSON."""
    return {
        "label": folder.label,
        "path": folder.path,
        "project": folder.project,
        "layout": folder.layout,
        "follow": folder.is_followed,
        "last_success_at": folder.succeeded_at,
        "last_change_at": folder.changed_at,
        "error": folder.error or None,
    }


def import_json(workspace: Workspace, found: DetectedLayout, tally: ImportCounts) -> dict[str, Any]:
    """Return an import's outcome as JSON, for imports and syncs."""
    return {
        "workspace": workspace.slug or workspace.name,
        "name": workspace.name,
        "layout": found.layout,
        "version": found.version,
        "added": dict(+tally.added),
        "updated": dict(+tally.updated),
        "unchanged": dict(+tally.unchanged),
        "problems": [
            {
                "file": problem.file,
                "line": problem.line,
                "what": problem.what,
                "action": problem.action,
                "outcome": problem.outcome,
            }
            for problem in tally.problems
        ],
    }


def run_document(run: Run) -> dict[str, Any]:
    """Return a run as JSON. ``from`` and ``to`` are positions, ``to`` exclusive."""
    proposal = run.proposal
    status = "nothing_due" if run.status == Run.Status.DONE and "nothing_due" in proposal else run.status
    return {
        "id": run.pk,
        "workspace": run.workspace.slug,
        "session": run.session.key if run.session else None,
        "kind": run.kind,
        "status": status,
        "from": run.from_position,
        "to": run.to_position,
        "error": run.error or proposal.get("nothing_due") or None,
        "error_code": run.error_code or None,
        "tokens": run.total_tokens,
        "cost": str(run.cost) if run.cost is not None else None,
        "model": run.model or None,
        "method": proposal.get("method"),
        "before": proposal.get("before"),
        "after": proposal.get("after"),
        "text": proposal.get("text"),
        "stage": run.stage or None,
        "attempts": run.attempt_count,
        "requested_by": run.requested_by,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }


def session_document(session: Session) -> dict[str, Any]:
    return {
        "key": session.key,
        "title": session.title,
        "epoch": session.epoch,
        "entries": session.entry_count,
        "active_entries": session.active_entry_count,
        "original_tokens": session.total_tokens,
        "active_tokens": session.active_tokens,
        "summary_tokens": session.summary_tokens,
        "last_consolidated": session.last_consolidated,
        "own": session.is_own,
        "parent": session.parent_id,
        "parent_call_id": session.parent_call_id or None,
        "forked_from": session.forked_from_id,
        "missing_since": session.missing_since,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
    }


def edit_document(run: Run) -> dict[str, Any]:
    """Return an edit's run as JSON, with the numbers of changed and skipped rows."""
    return {
        "id": run.pk,
        "status": run.status,
        "changed": run.proposal.get("changed", 0),
        "passed_over": run.proposal.get("passed_over", 0),
        "error": run.error or None,
    }


def knowledge_document(entry: KnowledgeEntry) -> dict[str, Any]:
    return {
        "id": entry.pk,
        "content_id": entry.content_id,
        "category": entry.category,
        "content": entry.content,
        "source": entry.source,
        "tags": entry.tags,
        "access_count": entry.access_count,
        "accessed_at": entry.accessed_at,
        "created_at": entry.created_at,
        "last_verified_at": entry.last_verified_at,
        "review_by": entry.review_by,
        "withdrawn_at": entry.withdrawn_at,
        "withdrawn_reason": entry.withdrawn_reason or None,
        **held_fields(entry),
    }


def observation_document(row: Observation) -> dict[str, Any]:
    return {
        "id": row.pk,
        "uid": row.uid,
        "category": row.category,
        "content": row.content,
        "source": row.source,
        "run": row.run_id,
        "created_at": row.occurred_at,
        "confirmations": row.confirmation_count,
        "last_verified_at": row.last_verified_at,
        "access_count": row.access_count,
        "accessed_at": row.accessed_at,
        "withdrawn_at": row.withdrawn_at,
        "withdrawn_reason": row.withdrawn_reason or None,
        **held_fields(row),
    }


def forgotten_document(receipt: Forgotten) -> dict[str, Any]:
    return {
        "id": receipt.pk,
        "kind": receipt.kind,
        "rows": receipt.counts,
        "workspaces": receipt.workspaces,
        "total": sum(receipt.counts.values()),
        "reason": receipt.reason or None,
        "forgotten_by": receipt.forgotten_by,
        "forgotten_at": receipt.forgotten_at,
        "lifted_at": receipt.lifted_at,
    }


def settings_document(workspace: Workspace, names: list[str]) -> dict[str, Any]:
    return {"workspace": workspace.slug, "settings": {name: getattr(workspace, name) for name in names}}


def activity_document(told: AuditRecord) -> dict[str, Any]:
    return {
        "id": told.pk,
        "event": told.action,
        "session": told.session_id,
        "text": told.text,
        "actor": {"kind": told.actor_kind, "name": told.actor_name},
        "detail": told.detail,
        "at": told.at,
    }
