"""What a scan finds in the memory, and how it is kept: one concern for each thing that a person should look at."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db import transaction
from django.db.models import Count

from knowledge_app.models import Concern, HygieneScore
from memoryhub.hygiene.rows import ENTRIES, FACTS, KNOWLEDGE, OBSERVATIONS, WORDS, Row, scan_row
from memoryhub.lib.scanners import summarise_matches
from memoryhub.lib.text.change_guard import numbers_in
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD, Alike, compare_texts
from sessions_app.models import Run, Workspace

Kind, Status = Concern.Kind, Concern.Status
MAX_EACH = 2_000  # open concerns of a kind that are kept; a scan says how many it left out
COMPARED = (FACTS, KNOWLEDGE, OBSERVATIONS)
WEIGHTS: dict[str, float] = {
    Kind.SECRET: 1.0,
    Kind.ORDER: 1.0,
    Kind.CONTRADICTION: 0.6,
    Kind.PERSONAL: 0.5,
    Kind.DUPLICATE: 0.4,
    Kind.STALE: 0.25,
}
BATCH_ROWS = 500


@dataclass(frozen=True)
class Finding:
    """A concern before it is kept: its kind, the row, of a pair the other row, and what was found in words."""

    kind: str
    table: str
    pk: int
    what: str
    fingerprint: str
    other_table: str = ""
    other_pk: int | None = None


def find_in_row(row: Row, *, today: date, now: datetime, stale_days: int) -> Iterator[Finding]:
    """Yield what is wrong with one row by itself: secrets, personal data, orders, and staleness."""
    found = scan_row(row)
    for kind in (Kind.SECRET, Kind.PERSONAL, Kind.ORDER):
        if words := summarise_matches(match for match in found if match.kind == kind.value):
            yield Finding(kind, row.table, row.pk, f"holds {words}"[:200], _fingerprint(kind, row.text, row))
    if row.table in COMPARED and (why := stale_since(row, today=today, now=now, stale_days=stale_days)):
        basis = f"{row.review_by} {row.verified_at} {row.made_at}"
        yield Finding(Kind.STALE, row.table, row.pk, why, _fingerprint(Kind.STALE, basis, row))


def stale_since(row: Row, *, today: date, now: datetime, stale_days: int) -> str:
    """Return why a row is stale, "" where it isn't.

    It is stale once its date for review has passed, unless it was verified on that day or later; and when for
    ``stale_days`` (0: never) nobody verified it and no agent read it. Being read keeps it from the second alone:
    an agent that reads something doesn't find out whether it still holds.
    """
    verified = row.verified_at
    if row.review_by and row.review_by <= today and (verified is None or verified.date() < row.review_by):
        return f"was to be reviewed by {_day(row.review_by)}"
    known = [moment for moment in (row.made_at, verified, row.read_at) if moment is not None]
    if not stale_days or not known or max(known) >= now - timedelta(days=stale_days):
        return ""
    if row.read_at is None or (verified is not None and verified > row.read_at):
        return f"{'last verified' if verified else 'kept'} {_day(max(known).date())}, never read since"
    return f"last read {_day(max(known).date())}, not verified since"


def _day(day: date) -> str:
    return f"{day.day} {day:%b} {day.year}"


def find_in_pairs(rows: Sequence[Row]) -> tuple[list[Finding], bool]:
    """Return duplicates and contradictions among facts, knowledge and observations, and whether some may be missing.

    Of a duplicate the first row is the one to stay: a pinned fact before others, then as they are in ``rows``.
    """
    rows = sorted(rows, key=lambda row: not row.is_pinned)
    alike = compare_texts([row.text for row in rows], threshold=DEFAULT_THRESHOLD)
    found = [
        _pair(Kind.DUPLICATE, rows[keep], rows[other], _likeness(rows[keep], rows[other]))
        for keep, other in _duplicates(alike)
    ]
    found += [
        _pair(Kind.CONTRADICTION, rows[one], rows[other], _difference(rows[one], rows[other]))
        for one, other, _ in alike.contrary
    ]
    return found, alike.is_cut


def _duplicates(alike: Alike) -> Iterator[tuple[int, int]]:
    for keep, others, _ in alike.groups:
        yield from ((keep, other) for other in others)


def _likeness(keep: Row, other: Row) -> str:
    if keep.table == other.table:
        return f"said twice, in two {_many(WORDS[keep.table])}"
    return f"said twice, in a {WORDS[keep.table]} and a {WORDS[other.table]}"


def _many(word: str) -> str:
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def _difference(one: Row, other: Row) -> str:
    return "the numbers differ" if numbers_in(one.text) != numbers_in(other.text) else "one of them negates it"


def _pair(kind: str, one: Row, other: Row, what: str) -> Finding:
    first, second = sorted((one, other), key=lambda row: (row.table, row.pk))
    mark = _fingerprint(kind, f"{first.text}\0{second.text}", first, second)
    return Finding(kind, one.table, one.pk, what, mark, other.table, other.pk)


def _fingerprint(kind: str, basis: str, *rows: Row) -> str:
    """Return what tells a concern from scan to scan: a row that says something else is a concern of its own."""
    places = " ".join(f"{row.table}:{row.pk}" for row in rows)
    return hashlib.sha256(f"{kind} {places}\0{basis}".encode(errors="surrogatepass")).hexdigest()


class Kept:
    """What a scan keeps of what it finds: of each kind those that are open already, then new ones, up to 2,000.

    What a person dismissed isn't raised again. ``counts``: all found, by kind, those dismissed aside.
    """

    def __init__(self, known: Mapping[str, str]) -> None:
        self.known = known
        self.counts: Counter[str] = Counter()
        self._open: dict[str, Finding] = {}
        self._new: dict[str, Finding] = {}
        self._new_counts: Counter[str] = Counter()

    def add(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            mark = finding.fingerprint
            status = self.known.get(mark)
            if status == Status.DISMISSED or mark in self._open or mark in self._new:
                continue
            self.counts[finding.kind] += 1
            if status == Status.OPEN:
                self._open[mark] = finding
            elif self._new_counts[finding.kind] < MAX_EACH:
                self._new_counts[finding.kind] += 1
                self._new[mark] = finding

    def kept(self) -> dict[str, Finding]:
        """Return what is kept, by fingerprint."""
        room: Counter[str] = Counter()
        kept = {}
        for mark, finding in (self._open | self._new).items():
            room[finding.kind] += 1
            if room[finding.kind] <= MAX_EACH:
                kept[mark] = finding
        return kept

    def left_out(self) -> dict[str, int]:
        """Return how many there are beyond those kept, by kind."""
        return {kind: count - MAX_EACH for kind, count in self.counts.items() if count > MAX_EACH}


def known_concerns(workspace: Workspace) -> dict[str, str]:
    """Return the status of every concern that was ever raised, by fingerprint."""
    return dict(Concern.objects.filter(workspace=workspace).values_list("fingerprint", "status"))


@transaction.atomic
def keep_findings(run: Run, kept: Kept, *, row_count: int, now: datetime) -> HygieneScore:
    """Write what a scan found: new concerns open, those no longer found settled; return the score that it comes to.

    What a person decided while the scan was under way stays decided.
    """
    workspace = run.workspace
    found = kept.kept()
    rows = Concern.objects.filter(workspace=workspace)
    now_known = {concern.fingerprint: concern for concern in rows}
    gone = [row.pk for mark, row in now_known.items() if row.status == Status.OPEN and mark not in found]
    for start in range(0, len(gone), BATCH_ROWS):
        rows.filter(pk__in=gone[start : start + BATCH_ROWS]).update(status=Status.SETTLED)
    changed = []
    for mark, finding in found.items():
        concern = now_known.get(mark)
        if concern is None or concern.status == Status.DISMISSED or _was_settled_meanwhile(concern, kept):
            continue
        if concern.status == Status.SETTLED:
            concern.status, concern.found_at, concern.run = Status.OPEN, now, run
        elif concern.what == finding.what and concern.object_id == finding.pk:
            continue
        concern.what = finding.what
        concern.table, concern.object_id = finding.table, finding.pk
        concern.other_table, concern.other_id = finding.other_table, finding.other_pk
        changed.append(concern)
    names = ["status", "found_at", "run", "what", "table", "object_id", "other_table", "other_id"]
    Concern.objects.bulk_update(changed, names, batch_size=200)
    new = [_concern(run, finding, now) for mark, finding in found.items() if mark not in now_known]
    Concern.objects.bulk_create(new, batch_size=BATCH_ROWS, ignore_conflicts=True)
    return HygieneScore.objects.create(
        workspace=workspace,
        run=run,
        score=score_of(workspace, row_count),
        row_count=row_count,
        counts=count_open(workspace),
        at=now,
    )


def _was_settled_meanwhile(concern: Concern, kept: Kept) -> bool:
    return concern.status == Status.SETTLED and kept.known.get(concern.fingerprint) != Status.SETTLED


def _concern(run: Run, finding: Finding, now: datetime) -> Concern:
    return Concern(
        workspace_id=run.workspace_id,
        run=run,
        kind=finding.kind,
        table=finding.table,
        object_id=finding.pk,
        other_table=finding.other_table,
        other_id=finding.other_pk,
        what=finding.what,
        weight=WEIGHTS[finding.kind],
        fingerprint=finding.fingerprint,
        found_at=now,
    )


def count_open(workspace: Workspace) -> dict[str, int]:
    """Return the number of open concerns of each kind, 0 where there are none."""
    rows = Concern.objects.filter(workspace=workspace, status=Status.OPEN).order_by()
    counts = dict(rows.values_list("kind").annotate(Count("pk")))
    return {kind.value: counts.get(kind.value, 0) for kind in Kind}


def score_of(workspace: Workspace, row_count: int) -> float:
    """Return the score of a memory of so many rows with its open concerns as they are now, 0 to 100.

    ``100 * (1 - weights / rows)``. Each row that an open concern names, both of a pair, adds the weight of its
    heaviest concern: secrets and orders 1, contradictions 0.6, personal data 0.5, duplicates 0.4, staleness 0.25.
    ``rows`` are the facts, knowledge entries, observations, key-values and cached responses that the scan looked at,
    and those messages that a concern names: a long conversation neither hides what is wrong nor makes it worse.
    100 where there is nothing to look at.
    """
    worst: dict[tuple[str, int], float] = {}
    rows = Concern.objects.filter(workspace=workspace, status=Status.OPEN)
    for table, pk, other_table, other_pk, weight in rows.values_list(
        "table", "object_id", "other_table", "other_id", "weight"
    ):
        worst[table, pk] = max(weight, worst.get((table, pk), 0.0))
        if other_pk is not None:
            worst[other_table, other_pk] = max(weight, worst.get((other_table, other_pk), 0.0))
    whole = row_count + sum(table == ENTRIES for table, _ in worst)
    return max(0.0, 100 * (1 - sum(worst.values()) / whole)) if whole else 100.0
