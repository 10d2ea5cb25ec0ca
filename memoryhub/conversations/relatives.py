"""The sessions that a session came from, and those that came from it."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from sessions_app.models import Entry, Session
from sessions_app.services.importing_by_id import FORKED_AT

MOST_SHOWN = 50


@dataclass(frozen=True)
class Relatives:
    """``started_at``: the URL of the tool call that started the session. ``forked_at``: the last shared entry."""

    parent: Session | None
    started_at: str
    original: Session | None
    forked_at: Entry | None
    subagents: list[Session]
    forks: list[Session]


def relatives_of(session: Session) -> Relatives:
    parent, original = session.parent, session.forked_from
    return Relatives(
        parent,
        _call_url(session, parent) if parent else "",
        original,
        _shared_entry(session) if original else None,
        list(session.subagents.order_by("created_at", "pk")[:MOST_SHOWN]),
        list(session.forks.order_by("created_at", "pk")[:MOST_SHOWN]),
    )


def _call_url(session: Session, parent: Session) -> str:
    """Return the URL of the result of the call that started a session, or of its parent."""
    slug, call = session.workspace.slug, session.parent_call_id
    result = Entry.objects.filter(session=parent, tool_call_id=call).order_by("pk").first() if call else None
    return reverse("sessions:entry", args=[slug, result.pk]) if result else _url(parent, slug)


def _url(session: Session, slug: str) -> str:
    return reverse("sessions:detail", args=[slug, session.pk])


def _shared_entry(session: Session) -> Entry | None:
    source_id = session.extra.get(FORKED_AT)
    if not isinstance(source_id, str) or not source_id:
        return None
    shared = Entry.objects.filter(workspace=session.workspace_id, source_id=source_id)
    return shared.exclude(session=session).order_by("-pk").first()
