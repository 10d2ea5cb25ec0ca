"""What revisions of documents changed, as short sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from django.db.models.functions import Length
from django.utils.translation import gettext, ngettext

from knowledge_app.models import MemoryRevision
from memoryhub.lib.document_size import SHOWN_CHARS
from memoryhub.lib.masked_text import masked

MAX_CHARS = 160
_BULLETS = "-*+#> "


def changed_revisions(pks: Collection[int]) -> dict[int, MemoryRevision]:
    """Return revisions by primary key, each with its document, base and proposal, except long ones. One query."""
    rows = MemoryRevision.objects.filter(pk__in=pks).select_related("document", "base", "proposal")
    rows = rows.annotate(size=Length("content")).filter(size__lte=SHOWN_CHARS)
    return {row.pk: row for row in rows.defer("raw", "base__raw", "proposal__proposed", "proposal__raw")}


def revised_text(revision: MemoryRevision) -> str:
    """Return what a revision changed, with its words if it is one line; secrets are masked."""
    before, after = _lines(revision.base.content if revision.base else ""), _lines(revision.content)
    added, removed = list((after - before).elements()), list((before - after).elements())
    name = revision.document.name
    if len(added) == len(removed) == 1:
        return gettext("%(name)s: %(text)s") % {"name": name, "text": reworded(removed[0], added[0])}
    if added and not removed:
        return _counted(gettext("Added to %(name)s: %(text)s"), name, added)
    if removed and not added:
        return _counted(gettext("Removed from %(name)s: %(text)s"), name, removed)
    if not added:
        return gettext("%(name)s was rearranged") % {"name": name}
    sentence = ngettext(
        "%(name)s: %(added)s line added, %(removed)s removed",
        "%(name)s: %(added)s lines added, %(removed)s removed",
        len(added),
    )
    return sentence % {"name": name, "added": len(added), "removed": len(removed)}


def reworded(before: str, after: str) -> str:
    """Return both wordings of a line, with the words that they have in common once."""
    old, new = masked(before).split(), masked(after).split()
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    was, now = old[start : len(old) - end], new[start : len(new) - end]
    if not was or not now:
        return f"{_short(' '.join(old))} → {_short(' '.join(new))}"
    return _short(" ".join([*new[:start], *was, "→", *now, *new[len(new) - end :]]))


def _common(some: Sequence[str], others: Sequence[str]) -> int:
    """Return the number of equal words at the beginning."""
    pairs = zip(some, others, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(some), len(others)))


def _counted(sentence: str, name: str, lines: Sequence[str]) -> str:
    text = sentence % {"name": name, "text": _short(masked(lines[0]))}
    more = len(lines) - 1
    if not more:
        return text
    values = {"text": text, "count": more}
    return ngettext("%(text)s, and %(count)s more line", "%(text)s, and %(count)s more lines", more) % values


def _lines(text: str) -> Counter[str]:
    """Return the lines with words, without the marks of lists and headings."""
    return Counter(line for row in text.split("\n") if (line := row.strip().lstrip(_BULLETS)))


def _short(text: str) -> str:
    return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1].rstrip()}…"
