"""What the streams of open pages read from the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as LoginSession
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from memoryhub.live.streams import News
from memoryhub.permissions import readers_of
from sessions_app.models import AuditRecord
from sessions_app.services.audit import RECENT_IDS


def read_news(known: frozenset[int] | None, people: Mapping[str, int], due: Collection[str]) -> News:
    """Return what to tell each login session: changed workspaces that its person may read.

    Runs one query if nothing changed and no heartbeat is ``due``. Records that a PostgreSQL transaction commits after
    later ones are noticed up to 256 ids below the newest.
    """
    recent = _recent(known)
    changed = {recent[pk] for pk in recent.keys() - known} if known is not None else set()
    readers = readers_of([pk for pk in changed if pk], people.values()) if changed - {None} else {}
    told = {
        session: {workspace for workspace, allowed in readers.items() if person in allowed}
        for session, person in people.items()
    }
    told = {session: workspaces for session, workspaces in told.items() if workspaces or session in due}
    ended = _ended({session: people[session] for session in told}, due) if told else set()
    return News(frozenset(recent), told, ended)


def _recent(known: frozenset[int] | None) -> dict[int, int | None]:
    """Return the workspaces of the latest audit records by id."""
    rows = AuditRecord.objects.values_list("id", "workspace_id")
    if known is None:
        return dict(rows.order_by("-id")[:RECENT_IDS])
    return dict(rows.filter(id__gt=max(known, default=0) - RECENT_IDS))


def _ended(people: Mapping[str, int], due: Collection[str]) -> set[str]:
    """Return the login sessions that have ended, or whose person is deactivated.

    Those whose heartbeat is due have also ended if the password has changed since.
    """
    live = LoginSession.objects.filter(session_key__in=people, expire_date__gt=timezone.now())
    sessions = {session.session_key: session for session in live}
    users = User.objects.filter(is_active=True).in_bulk(set(people.values()))
    return {
        key
        for key, person in people.items()
        if key not in sessions
        or person not in users
        or (key in due and not _has_password_of(sessions[key], users[person]))
    }


def _has_password_of(session: LoginSession, user: User) -> bool:
    hashes = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    given = session.get_decoded().get(HASH_SESSION_KEY, "")
    return any(constant_time_compare(given, known) for known in hashes)
