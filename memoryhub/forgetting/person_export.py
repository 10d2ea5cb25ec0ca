"""Export what the hub knows about a person, as JSON: for a request of the person themselves.

Of a text that mentions the person, only the lines that do are exported, so that nothing about others is; of rows that
an erasure deletes, everything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import copy
from datetime import datetime
from typing import Any

from django.db.models import Model

from memoryhub.forgetting.erasure import table_name
from memoryhub.forgetting.hub_erasure import Person, check_words, person_rules
from memoryhub.forgetting.matching import Redaction, composed, texts_in
from memoryhub.forgetting.person_search import accounts_of
from memoryhub.forgetting.rows import candidates_of
from memoryhub.forgetting.rules import Rules, base_of, find_changes, text_columns
from sessions_app.models import Entry, Session, Summary, Workspace
from sessions_app.services.audit import By, record

TIMES = ("occurred_at", "created_at", "recorded_at", "at", "updated_at", "history_date")


def export_person(person: Person, *, by: By) -> Iterator[str]:
    """Write the audit record and return the parts of the JSON document. Raises Invalid."""
    check_words(person)
    record(by, "memory.person_exported", "hub", "", "Exported what is known about a person")
    return _document(person, by.at)


def _document(person: Person, now: datetime) -> Iterator[str]:
    head = {"names": list(person.words), "sessions": list(person.sessions), "exported_at": now.isoformat()}
    yield _json(head)[:-1] + ', "accounts": ' + _json([*_accounts(person)]) + ', "workspaces": ['
    separator = ""
    for workspace in [*Workspace.objects.order_by("id"), None]:
        rules = person_rules(workspace, person)
        name = {"workspace": workspace.slug, "name": workspace.name} if workspace else {"workspace": None}
        yield separator + "\n" + _json(name)[:-1] + ', "rows": ['
        separator = ","
        between = ""
        for row in _rows(workspace, rules):
            yield f"{between}\n{_json(row)}"
            between = ","
        yield "]}"
    yield "\n]}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _accounts(person: Person) -> Iterator[dict[str, Any]]:
    for user in accounts_of(person):
        yield {
            "username": user.username,
            "email": user.email,
            "name": f"{user.first_name} {user.last_name}".strip(),
            "created_at": user.date_joined,
            "last_login": user.last_login,
            "is_active": user.is_active,
            "is_hub_operator": user.is_superuser,
            "roles": {one.workspace.slug: one.role for one in user.memberships.all()},
        }


def _rows(workspace: Workspace | None, rules: Rules) -> Iterator[dict[str, Any]]:
    for session in rules.sessions:
        yield from _of_session(session)
    for row in candidates_of(workspace, rules):
        affected = find_changes(copy(row), rules)
        if affected is None:
            continue
        names = None if affected.values is None else set(affected.values)
        texts = dict(_texts(row, rules.of(base_of(row)), names))
        if texts:
            yield _head(row) | {"texts": texts}


def _of_session(session: Session) -> Iterator[dict[str, Any]]:
    yield _head(session) | {"key": session.key, "texts": {"title": session.title, "summary": session.summary_text}}
    for model in (Entry, Summary):
        for row in model._base_manager.filter(session=session).order_by("id").iterator(chunk_size=500):
            role = {"role": row.role, "name": row.name} if isinstance(row, Entry) else {}
            yield _head(row) | role | {"session": session.key, "texts": {"content": row.content}}


def _head(row: Model) -> dict[str, Any]:
    at = next((value for name in TIMES if (value := getattr(row, name, None))), None)
    return {"table": table_name(row), "id": row.pk, "at": at}


def _texts(row: Model, redaction: Redaction, changed: set[str] | None) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a row with the lines that mention the person; all columns and lines if it is deleted."""
    for column in text_columns(type(row))[0]:
        value = getattr(row, column.name)
        if not value:
            continue
        if changed is None:
            yield column.name, value
        elif column.name in changed:
            lines = [line for text in texts_in(value) for line in composed(text).split("\n")]
            if found := [line for line in lines if redaction.mentions(line)]:
                yield column.name, "\n".join(found)
