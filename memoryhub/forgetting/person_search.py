"""Find what the hub knows about a person: counts for each workspace, and proposed aliases. Reads only."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Prefetch
from django.utils.crypto import salted_hmac

from memoryhub.forgetting.affected_lines import AffectedLines, Line
from memoryhub.forgetting.aliases import Alias, AliasFinder, OwnSession
from memoryhub.forgetting.erasure import Preview
from memoryhub.forgetting.hub_erasure import Person, check_words, person_rules
from memoryhub.forgetting.matching import Redaction, find_phrases
from memoryhub.forgetting.occurrences import Group, Occurrence, Occurrences
from memoryhub.forgetting.rows import candidates_of
from memoryhub.forgetting.rules import base_of, find_changes, texts_of
from sessions_app.models import Membership, Session, Workspace


@dataclass(frozen=True)
class Place:
    """A workspace and what an erasure would change there; None for the rows of no workspace.

    ``lines``: the first lines that are affected. ``sessions``: those that are deleted with their messages.
    """

    workspace: Workspace | None
    preview: Preview
    lines: list[Line]
    sessions: tuple[Session, ...]


@dataclass(frozen=True)
class PersonPlan:
    """Places with at least one row; proposals; and accounts of the hub with such a name, which are never erased.

    ``occurrences``: how the names occur, as ``Occurrences.groups`` returns it.
    """

    places: list[Place]
    aliases: list[Alias]
    sessions: list[OwnSession]
    accounts: list[User]
    occurrences: list[tuple[Group, list[Occurrence], int]]

    @property
    def total(self) -> int:
        return sum(place.preview.total for place in self.places)

    @property
    def left(self) -> list[tuple[Workspace, str]]:
        """Workspaces whose own name, address or folder has the name, and which of these."""
        return [(place.workspace, name) for place in self.places if place.workspace for name in place.preview.left]


def plan_person(person: Person) -> PersonPlan:
    """Search every workspace. Raises Invalid."""
    check_words(person)
    finder, occurrences = AliasFinder(person), Occurrences(person.phrases)
    places = []

    def may_match(text: str) -> object:
        return occurrences.may_match(text) or finder.may_match(text)

    for workspace in [*Workspace.objects.order_by("name", "id"), None]:
        rules, preview, lines = person_rules(workspace, person), Preview(), AffectedLines(workspace)
        for row in candidates_of(workspace, rules, may_match=may_match):
            finder.add(row, workspace)
            occurrences.add(texts_of(row))
            affected = find_changes(copy(row), rules)
            if affected is not None:
                preview.add(affected)
                lines.add(row, affected, rules.of(base_of(row)))
        if workspace:
            preview.finish(workspace, rules)
        if preview.total or preview.left:
            places.append(Place(workspace, preview, lines.first, rules.sessions))
    return PersonPlan(places, finder.aliases(), finder.sessions(), accounts_of(person), occurrences.groups)


def fingerprint(person: Person, plan: PersonPlan) -> str:
    """Return a keyed hash of what a preview says that is erased: names, sessions and rows."""
    rows = [[place.workspace and place.workspace.pk, sorted(place.preview.counts.items())] for place in plan.places]
    shown = [sorted(person.phrases), sorted(person.sessions), rows]
    return salted_hmac("memoryhub.forgetting.person", json.dumps(shown), algorithm="sha256").hexdigest()


def accounts_of(person: Person) -> list[User]:
    """Return the accounts of the hub whose name or e-mail address mentions a person."""
    names = Redaction(lines=find_phrases(person.phrases))
    roles = Prefetch("memberships", Membership.objects.select_related("workspace").order_by("workspace__name"))
    users = User.objects.prefetch_related(roles).order_by("username")
    return [
        user
        for user in users
        if names.mentions([user.username, user.email, f"{user.first_name} {user.last_name}".strip()])
    ]
