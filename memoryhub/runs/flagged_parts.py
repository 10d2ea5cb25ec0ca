"""The parts of held changes that the content check flags: they are only accepted if a person chooses them."""

from __future__ import annotations

from collections import defaultdict

from knowledge_app.models import HeldChange
from knowledge_app.services.documents.consolidation_guard import foreign_facts, foreign_reason
from knowledge_app.services.documents.held_changes import Hunk, hunks_of
from memoryhub.lib.document_size import is_oversize
from memoryhub.lib.text.change_guard import check_change
from sessions_app.models import Entry, Run


def parts_with_warnings(change: HeldChange) -> list[tuple[Hunk, dict[str, list[str]]]]:
    """Return the parts of a held change, each with what is wrong with its new lines, by line."""
    ours = change.ours.content if change.ours else ""
    warnings = {} if is_oversize(change.proposed) or is_oversize(ours) else _warnings(change, ours)
    return [(hunk, {line: warnings[line] for line in hunk.new if line in warnings}) for hunk in hunks_of(change)]


def _warnings(change: HeldChange, ours: str) -> dict[str, list[str]]:
    """Return the warnings of the content check by proposed line, also about facts that no user wrote."""
    lines = change.proposed.split("\n")
    warnings: defaultdict[str, list[str]] = defaultdict(list)
    for finding in check_change(ours, change.proposed).findings:
        warnings[lines[finding.line - 1]].append(_sentence(finding.message))
    run = change.run
    if run is None or run.kind != Run.Kind.CONSOLIDATION or not run.session_id:
        return warnings
    entries = Entry.objects.in_conversation().filter(
        session=run.session_id, epoch=run.epoch, position__gte=run.from_position, position__lt=run.to_position
    )
    foreign = foreign_facts(ours, change.proposed, list(entries))
    for number in foreign:
        warnings[lines[number - 1]].append(_sentence(foreign_reason(1)))
    return {line: list(dict.fromkeys(found)) for line, found in warnings.items()}


def _sentence(message: str) -> str:
    return f"{message[:1].upper()}{message[1:]}."
