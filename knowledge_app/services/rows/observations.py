"""grid's observations: findings, insights and lessons. Near-duplicates are offered as confirmations."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext
from simple_history.utils import bulk_create_with_history

from knowledge_app.models import Confirmation, Observation
from knowledge_app.services.held_rows import hold_flagged
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.lib.database import db_retry
from memoryhub.lib.errors import Conflict, Invalid
from memoryhub.lib.text.change_guard import count_negations, numbers_in
from memoryhub.lib.text.facts import normal_form
from memoryhub.lib.text.similarity import tokens_of
from memoryhub.lib.validation import clean_text
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By, record
from sessions_app.services.workspaces import lock_workspace

MAX_CHARS = 4_000
MAX_SOURCE = 500
NEAR = 0.7  # minimum similarity to be offered as a confirmation
COMPARED = 20_000  # latest observations to compare with
CATEGORIES = [category.value for category in Observation.Category]


@dataclass(frozen=True)
class NewObservation:
    """An observation to be stored."""

    category: str
    content: str
    source: str = ""


@dataclass(frozen=True)
class Stored:
    """The result of storing: new observations, and confirmations offered for near-duplicates."""

    added: list[Observation]
    offered: list[Confirmation]


@db_retry.retried
def store(
    workspace: Workspace,
    said: Sequence[NewObservation],
    *,
    by: By,
    run: Run | None = None,
    even_if_known: bool = False,
) -> Stored:
    """Store observations in one transaction. What is much like a known one, withdrawn or not, is offered instead.

    ``even_if_known``: a person said that it is another thing. Raises Invalid, and then stores nothing.
    """
    checked = [checked_observation(one) for one in said]
    with transaction.atomic():
        lock_workspace(workspace.pk)  # serialize concurrent writes of similar observations
        fresh, near = _split_known(workspace, checked, even_if_known=even_if_known)
        offered = [
            Confirmation(
                workspace=workspace,
                observation=known,
                run=run,
                category=one.category,
                content=one.content,
                source=one.source,
                similarity=likeness,
                created_at=by.at,
            )
            for one, known, likeness in near
        ]
        Confirmation.objects.bulk_create(offered, batch_size=200)
        added = _create(workspace, fresh, run, by)
        _tell(workspace, added, offered, by)
        hold_flagged(added, by)
        return Stored(added, offered)


def checked_observation(one: NewObservation) -> NewObservation:
    """Return an observation as it is stored. Raises Invalid."""
    content = clean_text(one.content).strip()
    if one.category not in CATEGORIES:
        raise Invalid(gettext("The kinds are %(names)s.") % {"names": ", ".join(CATEGORIES)}, code="bad_observation")
    if not content:
        raise Invalid(gettext("An observation can't be empty."), code="bad_observation")
    if len(content) > MAX_CHARS:
        words = gettext("An observation can have at most %(most)s characters; this one has %(count)s.")
        raise Invalid(words % {"most": f"{MAX_CHARS:,}", "count": f"{len(content):,}"}, code="bad_observation")
    return NewObservation(one.category, content, clean_text(one.source).strip()[:MAX_SOURCE])


def _split_known(
    workspace: Workspace, said: Sequence[NewObservation], *, even_if_known: bool
) -> tuple[list[NewObservation], list[tuple[NewObservation, Observation, float]]]:
    """Return new observations, and near-duplicates as (observation, known one, similarity)."""
    if even_if_known:
        return list(said), []
    known = list(Observation.objects.filter(workspace=workspace).order_by("-id")[:COMPARED])
    traits = [_traits(row.content) for row in known]
    waiting = Confirmation.objects.filter(workspace=workspace, status=Confirmation.Status.OFFERED)
    offered = {(pk, normal_form(content)) for pk, content in waiting.values_list("observation_id", "content")}
    fresh: list[NewObservation] = []
    near: list[tuple[NewObservation, Observation, float]] = []
    for one in said:
        likeness, row = _most_alike(one.content, known, traits)
        if row is None:
            if not any(_similarity(_traits(one.content), _traits(other.content)) >= NEAR for other in fresh):
                fresh.append(one)
        elif (row.pk, normal_form(one.content)) not in offered:
            near.append((one, row, likeness))
    return fresh, near


Traits = tuple[str, frozenset[str], object]


def _traits(text: str) -> Traits:
    return normal_form(text), tokens_of(text), (numbers_in(text), count_negations(text))


def _similarity(one: Traits, other: Traits) -> float:
    """Return the similarity of two texts by their tokens, 0 to 1; 0 if numbers or negations differ."""
    if one[0] == other[0]:
        return 1.0
    if one[2] != other[2] or not one[1] or not other[1]:
        return 0.0
    return len(one[1] & other[1]) / len(one[1] | other[1])


def _most_alike(
    text: str, known: Sequence[Observation], traits: Sequence[Traits]
) -> tuple[float, Observation | None]:
    own = _traits(text)
    likeness, _, row = max(
        (
            (_similarity(own, other), -place, row)
            for place, (other, row) in enumerate(zip(traits, known, strict=True))
        ),
        default=(0.0, 0, None),
        key=lambda found: found[:2],
    )
    return (likeness, row) if likeness >= NEAR else (0.0, None)


def _create(workspace: Workspace, said: Sequence[NewObservation], run: Run | None, by: By) -> list[Observation]:
    rows = [
        Observation(
            workspace=workspace,
            run=run,
            uid=str(uuid.uuid4()),
            category=one.category,
            content=one.content,
            source=one.source,
            occurred_at=by.at,
            recorded_at=by.at,
            updated_at=by.at,
        )
        for one in said
    ]
    if rows:
        reason = f"{by.actor.name}: added"
        bulk_create_with_history(rows, Observation, default_change_reason=reason, default_date=by.at)
    return list(Observation.objects.filter(workspace=workspace, uid__in=[row.uid for row in rows]).order_by("id"))


def _tell(workspace: Workspace, added: list[Observation], offered: list[Confirmation], by: By) -> None:
    if not added and not offered:
        return
    words = f"{len(added)} observation{'' if len(added) == 1 else 's'} added"
    words += f", {len(offered)} much like known ones" if offered else ""
    detail = {"added": [row.pk for row in added], "offered": [row.pk for row in offered]}
    record(by, "observations.added", "workspace", workspace.pk, words, workspace=workspace, detail=detail)


@transaction.atomic
def decide(confirmation: Confirmation, *, is_same: bool, by: By) -> Run | Observation:
    """Settle an offered confirmation: it counts for the known observation, or becomes one of its own.

    Counting takes a withdrawn observation back in and marks it as verified; the run returned can be undone. Raises
    Conflict.
    """
    locked = Confirmation.objects.select_for_update(of=("self",)).get(pk=confirmation.pk)
    if locked.status != Confirmation.Status.OFFERED:
        raise Conflict(gettext("This has been decided already."), code="already_decided")
    locked.status = Confirmation.Status.CONFIRMED if is_same else Confirmation.Status.KEPT_APART
    locked.decided_at, locked.decided_by = by.at, by.actor.name[:200]
    locked.save(update_fields=["status", "decided_at", "decided_by"])
    workspace, known = locked.workspace, Observation.objects.select_for_update().get(pk=locked.observation_id)
    if is_same:
        values = {
            "confirmation_count": known.confirmation_count + 1,
            "last_verified_at": by.at.isoformat(),
            "withdrawn_at": None,
            "withdrawn_reason": "",
        }
        run = edit_rows(workspace, "observations", "assign", [known.pk], values=values, by=by)
        run.options = run.options | {"confirmation": locked.pk}
        run.save(update_fields=["options"])
        return run
    said = NewObservation(locked.category, locked.content, locked.source)
    stored = store(workspace, [said], by=by, run=locked.run, even_if_known=True)
    return stored.added[0]
