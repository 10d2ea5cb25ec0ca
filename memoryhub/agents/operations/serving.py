"""Sessions and runs as agents get them: without names and lines that the content check flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memoryhub.as_json import run_document, session_document
from memoryhub.lib.content_check.check import unflagged
from memoryhub.lib.content_check.stand_ins import served_name, served_text
from memoryhub.lib.layouts.records import UNKNOWN_RECORDS, SessionRecord
from sessions_app.models import Run, Session, Summary

Document = dict[str, Any]
OF_MESSAGES = (UNKNOWN_RECORDS, "checkpoint")  # extra fields of a session that hold what was said


def served_key(session: Session) -> str:
    return served_name(session.key, "session", session.pk)


def served_session(session: Session) -> Document:
    key = served_key(session)
    channel = session.channel if key == session.key else ""  # it is a part of the key
    return (
        {"id": session.pk, "channel": channel}
        | session_document(session)
        | {"key": key, "title": served_text(session.title)}
    )


def served_run(run: Run) -> Document:
    """Return a run as JSON. Its error may quote a model's reply."""
    document = run_document(run)
    error = document["error"]
    return document | {
        "session": served_key(run.session) if run.session else None,
        "error": served_text(error) if error else None,
    }


def served_record(session: Session, record: SessionRecord) -> SessionRecord:
    """Return what an agent's export of a session has. Its messages are as they were said."""
    ours = _names_of_ours(session)
    return replace(
        record,
        key=served_key(session),
        title=served_text(record.title),
        summary_text=unflagged(record.summary_text),
        summaries=[
            one if one.source_id in ours else replace(one, content=unflagged(one.content), extra=_served(one.extra))
            for one in record.summaries
        ],
        parent_key=served_text(record.parent_key),
        forked_from=served_text(record.forked_from),
        extra=_served(record.extra),
    )


def _names_of_ours(session: Session) -> set[str]:
    """Return the names of summaries that the hub made, but none that a file gave to one of its own, too."""
    summaries = Summary.objects.filter(session=session)
    checked = summaries.filter(source_id="").exclude(method=Summary.Method.IMPORTED)
    names = {f"summary-{pk}" for pk in checked.values_list("pk", flat=True)}
    return names.difference(summaries.exclude(source_id="").values_list("source_id", flat=True))


def _served(value: Any) -> Any:
    """Return extra fields of a session's file without flagged texts."""
    if isinstance(value, str):
        return served_text(value)
    if isinstance(value, list):
        return [_served(item) for item in value]
    if isinstance(value, Mapping):
        return {served_text(name): item if name in OF_MESSAGES else _served(item) for name, item in value.items()}
    return value
