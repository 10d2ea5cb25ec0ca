"""Merge a session's title and summary from its file with what people and runs set in the hub."""

from __future__ import annotations

from memoryhub.lib.layouts.records import Problem, SessionRecord
from sessions_app.models import AuditRecord, Run, Session, SourceFile

MERGED = {"title": "title", "summary_text": "summary"}
KEY = "session_values"  # in SourceFile.extra: the values at the last import
SHOWN_CHARS = 200


def merged_values(
    session: Session, record: SessionRecord, source: SourceFile | None, path: str
) -> tuple[dict[str, str], list[Problem]]:
    """Return the title and summary that a session gets from its file, and the conflicts.

    A value set in the hub stays until the file's own value changes. Then the file's value is used, and the hub's is
    named in a problem. A value removed from the file never removes one set in the hub.
    """
    before = source.extra.get(KEY, {}) if source and source.session_id == session.pk else {}
    values: dict[str, str] = {}
    problems = []
    for name, label in MERGED.items():
        ours, theirs = getattr(session, name), getattr(record, name)
        is_ours = ours != before[name] if name in before else _is_set_in_hub(session, name)
        if ours == theirs or not is_ours:
            values[name] = theirs
        elif name in before and theirs and theirs != before[name]:
            values[name] = theirs
            what = f"its {label} changed, and in the hub too: {ours[:SHOWN_CHARS]!r}"
            problems.append(Problem(path, None, what, f"the file's {label} is used", "noted"))
        else:
            values[name] = ours
    return values, problems


def remember_values(source: SourceFile, record: SessionRecord) -> None:
    """Keep the file's values for the next import. The caller saves the row."""
    source.extra = source.extra | {KEY: {name: getattr(record, name) for name in MERGED}}


def _is_set_in_hub(session: Session, name: str) -> bool:
    """Return whether a person or a run set a value, for a file whose earlier values aren't known."""
    if not getattr(session, name):
        return False
    if name == "title":
        return AuditRecord.objects.filter(session=session, action__in=("session.renamed", "session.opened")).exists()
    runs = Run.objects.filter(session=session, kind=Run.Kind.CONSOLIDATION, status=Run.Status.DONE)
    return runs.exclude(origin=Run.Origin.AGENT).exists()
