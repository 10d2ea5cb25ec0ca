"""Workspaces, sessions, entries, summaries, runs and their sources."""

from sessions_app.models.audit import AuditRecord, AuditSeal, IndexGuard, MutationGuard
from sessions_app.models.conversations import AppendReceipt, DailyTotal, DeletedSession, Entry, Session, Summary
from sessions_app.models.runs import Run
from sessions_app.models.sources import ImportProblem, ImportReport, SourceFile, SourceFolder
from sessions_app.models.syncs import SyncState
from sessions_app.models.webhooks import Webhook, WebhookDelivery
from sessions_app.models.workspaces import Membership, Workspace

__all__ = [
    "AppendReceipt",
    "AuditRecord",
    "AuditSeal",
    "DailyTotal",
    "DeletedSession",
    "Entry",
    "ImportProblem",
    "ImportReport",
    "IndexGuard",
    "Membership",
    "MutationGuard",
    "Run",
    "Session",
    "SourceFile",
    "SourceFolder",
    "Summary",
    "SyncState",
    "Webhook",
    "WebhookDelivery",
    "Workspace",
]
