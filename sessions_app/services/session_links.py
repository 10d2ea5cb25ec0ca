"""Links between sessions: of subagents to the session that started them, and of forks to their original."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from memoryhub.lib.layouts.records import SessionRecord
from sessions_app.models import Session, Workspace

LINKS = {"parent_key": "parent", "forked_from": "forked_from"}  # in Session.extra: the field that the key fills


def stored_links(record: SessionRecord) -> dict[str, str]:
    """Return a record's links for ``Session.extra``, where they wait for the other session to be imported."""
    return {name: getattr(record, name) for name in LINKS if getattr(record, name)}


def link_key(extra: dict[str, Any], name: str) -> str:
    """Return the key of the other session; "" if there is none. Files have fields of these names, too."""
    key = extra.get(name)
    return key if isinstance(key, str) else ""


def link_sessions(workspace: Workspace) -> None:
    """Link the sessions of a workspace whose parents or originals were imported, in whichever order."""
    waiting = Q()
    for name, field in LINKS.items():
        waiting |= Q(**{field: None, "extra__contains": name})
    sessions = list(Session.objects.filter(waiting, workspace=workspace).only("key", "extra", *LINKS.values()))
    keys = {key for session in sessions for name in LINKS if (key := link_key(session.extra, name))}
    found: dict[str, int] = {}
    for start in range(0, len(keys), 500):
        some = Session.objects.filter(workspace=workspace, key__in=sorted(keys)[start : start + 500])
        found |= dict(some.values_list("key", "pk"))
    for session in sessions:
        links = {f"{field}_id": found.get(link_key(session.extra, name)) for name, field in LINKS.items()}
        new = {field: pk for field, pk in links.items() if pk and pk != session.pk and not getattr(session, field)}
        if new:
            Session.objects.filter(pk=session.pk).update(**new)
