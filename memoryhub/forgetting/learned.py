"""Find what was learned from a session. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from django.db.models import Exists, OuterRef, Q

from knowledge_app.models import Fact, FactSource, HeldChange, MemoryRevision
from knowledge_app.services.documents.fact_steps import steps_of
from memoryhub.forgetting.matching import phrase_of
from memoryhub.lib.text.facts import fact_lines, match_facts
from sessions_app.models import Session


def facts_only_from(session: Session) -> list[str]:
    """Return what only a session taught: facts in all their words, and the words that it gave to others."""
    made = _revisions_of(session)
    facts = Fact.objects.filter(pk__in=_only_from(session, made)).select_related("document", "born", "died")
    texts = [text for fact in facts.order_by("pk") for text in _words_of(fact)]
    return list(dict.fromkeys([*texts, *_reworded(made)]))


def _revisions_of(session: Session) -> list[MemoryRevision]:
    """Return the revisions by a session's runs, and by people who approved what these proposed."""
    approved = HeldChange.objects.filter(
        run__session=session,
        status=HeldChange.Status.APPROVED,
        document=OuterRef("document"),
        decided_at=OuterRef("created_at"),
    )
    found = MemoryRevision.objects.filter(Q(run__session=session) | Exists(approved))
    return list(found.filter(document__workspace=session.workspace_id).select_related("base", "document"))


def _only_from(session: Session, made: Sequence[MemoryRevision]) -> set[int]:
    of_session = FactSource.objects.filter(
        Q(entry__session=session)
        | Q(run__session=session)
        | Q(history_entry__session=session)
        | Q(history_entry__run__session=session)
    )
    born = Fact.objects.filter(born__in=[revision.pk for revision in made])
    mine = {*of_session.values_list("fact", flat=True), *born.values_list("pk", flat=True)}
    elsewhere = FactSource.objects.filter(fact__in=mine).exclude(pk__in=of_session.values("pk"))
    return mine.difference(elsewhere.values_list("fact", flat=True))


def _words_of(fact: Fact) -> list[str]:
    """Return a fact's text and those that it had before."""
    return [fact.text] if fact.text in fact.born.content else [fact.text, *(step.text for step in steps_of(fact))]


def _reworded(made: Iterable[MemoryRevision]) -> Iterator[str]:
    """Yield the texts that revisions gave to facts that were known before, if they have other words."""
    for revision in made:
        separator = revision.document.separator
        before = fact_lines(revision.base.content, separator) if revision.base else []
        after = fact_lines(revision.content, separator)
        for new, old in match_facts(before, after).items():
            if not set(phrase_of(after[new].text)) <= set(phrase_of(before[old].text)):
                yield after[new].text
