"""Findings of a scan and how they are stored, as one Concern each."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db import transaction
from django.db.models import Count

from knowledge_app.models import Concern, HygieneScore
from memoryhub.hygiene.rows import COMPARED, ENTRIES, FACTS, WORDS, Row, scan_row
from memoryhub.lib.scanners import summarise_matches
from memoryhub.lib.text.change_guard import numbers_in
from memoryhub.lib.text.forgotten import MARK
from memoryhub.lib.text.similarity import DEFAULT_THRESHOLD, SimilarityResult, compare_texts
from sessions_app.models import Run, Workspace

Kind, Status = Concern.Kind, Concern.Status
MAX_EACH = 2_000  # open concerns stored per kind; a scan reports how many more there are
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
    """Something that a scan found: its kind, the row (of a pair also the other row), and a description."""

    kind: str
    table: str
    pk: int
    what: str
    fingerprint: str
    other_table: str = ""
    other_pk: int | None = None


def find_in_row(row: Row, *, today: date, now: datetime, stale_days: int) -> Iterator[Finding]:
    """Yield the findings in a single row: secrets, personal data, instructions, staleness."""
    found = scan_row(row)
    for kind in (Kind.SECRET, Kind.PERSONAL, Kind.ORDER):
        if words := summarise_matches(match for match in found if match.kind == kind.value):
            yield Finding(kind, row.table, row.pk, f"holds {words}"[:200], _fingerprint(kind, row.text, row))
    if row.table in COMPARED and (why := stale_since(row, today=today, now=now, stale_days=stale_days)):
        basis = f"{row.review_by} {row.verified_at} {row.made_at}"
        yield Finding(Kind.STALE, row.table, row.pk, why, _fingerprint(Kind.STALE, basis, row))


def stale_since(row: Row, *, today: date, now: datetime, stale_days: int) -> str:
    """Return why a row is stale, or "" if it isn't.

    A row is stale when its review date has passed without verification, or when it was neither verified nor read by
    an agent for ``stale_days`` (0: never). A read doesn't replace a due review: it doesn't confirm the content.
    """
    verified = row.verified_at
    if row.review_by and row.review_by <= today and (verified is None or verified.date() < row.review_by):
        return f"review was due on {_day(row.review_by)}"
    known = [moment for moment in (row.made_at, verified, row.read_at) if moment is not None]
    if not stale_days or not known or max(known) >= now - timedelta(days=stale_days):
        return ""
    if row.read_at is None or (verified is not None and verified > row.read_at):
        return f"{'last verified' if verified else 'kept'} {_day(max(known).date())}, never read since"
    return f"last read {_day(max(known).date())}, not verified since"


def _day(day: date) -> str:
    return f"{day.day} {day:%b} {day.year}"


def find_in_pairs(rows: Sequence[Row], *, has_mirror: bool = False) -> tuple[list[Finding], bool]:
    """Return duplicates and contradictions between rows, and whether the comparison was cut short.

    The first row of a duplicate is the one to keep: by their ranks, then in the order of ``rows``. Rows that text
    was erased from aren't compared.

    ``has_mirror``: the agent stores each fact as a knowledge entry, too, which makes no duplicate.
    """
    rows = [row for row in rows if MARK not in row.text]
    rows.sort(key=lambda row: row.rank)
    alike = compare_texts([row.text for row in rows], threshold=DEFAULT_THRESHOLD)
    found = [
        _pair(Kind.DUPLICATE, rows[keep], rows[other], _duplicate_text(rows[keep], rows[other]))
        for keep, other in _duplicates(alike, rows, has_mirror=has_mirror)
    ]
    found += [
        _pair(Kind.CONTRADICTION, rows[one], rows[other], _contradiction_text(rows[one], rows[other]))
        for one, other, _ in alike.contradictions
    ]
    return found, alike.is_cut


def _duplicates(alike: SimilarityResult, rows: Sequence[Row], *, has_mirror: bool) -> Iterator[tuple[int, int]]:
    for keep, others, _ in alike.groups:
        group = [keep, *others]
        facts = [index for index in group if rows[index].table == FACTS]
        parts = [facts, [index for index in group if index not in facts]] if has_mirror else [group]
        yield from ((part[0], other) for part in parts for other in part[1:])


def _duplicate_text(keep: Row, other: Row) -> str:
    if keep.table == other.table:
        return f"duplicate: two {_plural(WORDS[keep.table])}"
    return f"duplicate: a {WORDS[keep.table]} and a {WORDS[other.table]}"


def _plural(word: str) -> str:
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def _contradiction_text(one: Row, other: Row) -> str:
    return "the numbers differ" if numbers_in(one.text) != numbers_in(other.text) else "one of them negates it"


def _pair(kind: str, one: Row, other: Row, what: str) -> Finding:
    first, second = sorted((one, other), key=lambda row: (row.table, row.pk))
    mark = _fingerprint(kind, f"{first.text}\0{second.text}", first, second)
    return Finding(kind, one.table, one.pk, what, mark, other.table, other.pk)


def _fingerprint(kind: str, basis: str, *rows: Row) -> str:
    """Return what identifies a finding across scans; a changed text makes a new finding."""
    places = " ".join(f"{row.table}:{row.pk}" for row in rows)
    return hashlib.sha256(f"{kind} {places}\0{basis}".encode(errors="surrogatepass")).hexdigest()


class FindingSet:
    """The findings of a scan to store: per kind, those already open, then new ones, up to 2,000.

    Dismissed findings are dropped. ``counts``: the number of findings by kind, including those over the limit.
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
        """Return the findings to store, by fingerprint."""
        room: Counter[str] = Counter()
        kept = {}
        for mark, finding in (self._open | self._new).items():
            room[finding.kind] += 1
            if room[finding.kind] <= MAX_EACH:
                kept[mark] = finding
        return kept

    def left_out(self) -> dict[str, int]:
        """Return the number of findings over the limit, by kind."""
        return {kind: count - MAX_EACH for kind, count in self.counts.items() if count > MAX_EACH}


def concern_statuses(workspace: Workspace) -> dict[str, str]:
    """Return the status of all concerns of a workspace, by fingerprint."""
    return dict(Concern.objects.filter(workspace=workspace).values_list("fingerprint", "status"))


@transaction.atomic
def store_findings(run: Run, kept: FindingSet, *, row_count: int, now: datetime) -> HygieneScore:
    """Store a scan's findings: open new concerns, settle those no longer found; return the score.

    Decisions that people made during the scan are kept.
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
    new = [new_concern(workspace, run, finding, now) for mark, finding in found.items() if mark not in now_known]
    Concern.objects.bulk_create(new, batch_size=BATCH_ROWS, ignore_conflicts=True)
    return HygieneScore.objects.create(
        workspace=workspace,
        run=run,
        score=score_of(workspace, row_count),
        row_count=row_count,
        counts=count_open(workspace),
        at=now,
    )


def _was_settled_meanwhile(concern: Concern, kept: FindingSet) -> bool:
    return concern.status == Status.SETTLED and kept.known.get(concern.fingerprint) != Status.SETTLED


def new_concern(workspace: Workspace, run: Run | None, finding: Finding, now: datetime) -> Concern:
    return Concern(
        workspace=workspace,
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
    """Return the number of open concerns of each kind."""
    rows = Concern.objects.filter(workspace=workspace, status=Status.OPEN).order_by()
    counts = dict(rows.values_list("kind").annotate(Count("pk")))
    return {kind.value: counts.get(kind.value, 0) for kind in Kind}


def score_of(workspace: Workspace, row_count: int) -> float:
    """Return the health score of a memory from its open concerns, 0 to 100.

    ``100 * (1 - weights / rows)``: each row with an open concern adds the weight of its worst concern (secrets and
    instructions 1, contradictions 0.6, personal data 0.5, duplicates 0.4, stale rows 0.25). ``rows`` counts scanned
    rows of the memory plus messages with a concern, so that long conversations don't change the score. 100 if empty.
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
