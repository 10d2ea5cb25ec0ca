"""The report of ``bench/search/measure.py``: each figure, its goal, and whether it passed."""

from __future__ import annotations

from typing import Any

MEASURES = {"recall": "R@10", "ndcg": "nDCG@10", "mrr": "MRR"}
SCOPES = ("one workspace", "the biggest workspace", "the whole hub")
TIMED = ("raw", "join", "candidates", "page", "page, all kinds", "rerank")
MOST_LOST = 0.002  # recall lost with the graph: a tie in the ranking can cost this much
Figures = dict[str, Any]


class Report:
    """Prints the goals and collects those that were missed. ``quick``: with sizes too small for some goals."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.missed: list[str] = []
        self.figures: Figures = {}

    def say(self, text: str) -> None:
        print(text, flush=True)

    def judge(self, goal: str, *, met: bool) -> None:
        self.say(f"  {'pass' if met else 'MISS'}  {goal}")
        if not met:
            self.missed.append(goal)

    def close(self) -> int:
        self.say("all goals met\n" if not self.missed else f"{len(self.missed)} missed: {'; '.join(self.missed)}\n")
        return int(bool(self.missed))

    def quality(self, found: Figures) -> None:
        self.figures["quality"] = found
        self.say("\n1. Quality: LoCoMo's questions (main categories; adversarial ones separately)")
        means = {vendor: {name: _mean(sums) for name, sums in by["shared"].items()} for vendor, by in found.items()}
        for vendor, by_name in means.items():
            for name, parts in by_name.items():
                self.say(
                    f"  {vendor:<12}{name:<16}{_shown(parts['main'])}   adversarial {_shown(parts['adversarial'])}"
                )
        for vendor, by_name in means.items():
            plain, graph = by_name["entries"]["main"], by_name["entries, graph"]["main"]
            every, said = by_name["all kinds"]["main"], f"({vendor})"
            self.judge(f"R@10 >= .75, nDCG@10 >= .58 {said}", met=plain["recall"] >= 0.75 and plain["ndcg"] >= 0.58)
            self.judge(f"R@10 >= .75 over all kinds {said}", met=every["recall"] >= 0.75)
            self.judge(f"R@10 >= .76 with the graph {said}", met=graph["recall"] >= 0.76)
            if "recall" in by_name:
                lost = by_name["recall"]["main"]["recall"] - by_name["recall, graph"]["main"]["recall"]
                self.judge(f"recall: the graph doesn't lower it ({-lost:+.4f}, {vendor})", met=lost <= MOST_LOST)
        self._same_everywhere(found, means)

    def _same_everywhere(self, found: Figures, means: Figures) -> None:
        self.say("\n2. The same results on both databases, and in shared and separate ones")
        own = {vendor: _mean(_added([one["entries"] for one in by["own"]])) for vendor, by in found.items()}
        for vendor, parts in own.items():
            apart = _furthest(parts["main"], means[vendor]["entries"]["main"])
            self.say(f"  {vendor:<12}separate        {_shown(parts['main'])}")
            self.judge(f"shared against separate within .01: {apart:.4f} ({vendor})", met=apart <= 0.01)
        if len(means) == 2:
            one, other = means.values()
            apart = max(_furthest(one[name]["main"], other[name]["main"]) for name in one)
            self.judge(f"PostgreSQL against SQLite within .01: {apart:.4f}", met=apart <= 0.01)

    def speed(self, found: Figures) -> None:
        self.figures["speed"] = found
        self.say("\n3. Speed: milliseconds, p50 / p95; questions of 2 to 8 words")
        for vendor, sizes in found.items():
            for one in sizes:
                rate = one["entries"] / one["seconds to fill"]
                self.say(f"  {vendor}, {one['entries']:,} entries ({rate:,.0f} stored per second)")
                for scope in SCOPES:
                    times = one[scope]
                    shown = [f"{n} {times[n]['p50']:.2f} / {times[n]['p95']:.2f}" for n in TIMED if n in times]
                    self.say(f"    {scope}: {'; '.join(shown)}")
                    for parts in ("parts", "parts, all kinds"):
                        inner = "; ".join(f"{name} {spent:.2f}" for name, spent in times[parts].items())
                        self.say(f"      mean of the page's {parts}: {inner}")
        for vendor, sizes in found.items():
            self._judge_speed(vendor, sizes[-1])

    def _judge_speed(self, vendor: str, one: Figures) -> None:
        times = {name: spent["p50"] for name, spent in one["one workspace"].items() if "p50" in spent}
        raw, said = times["raw"], f"({vendor}, {one['entries']:,})"
        if vendor == "SQLite" and one["entries"] >= 1_000_000:
            ratio = raw / times["join"]
            self.judge(f"scoped <= .2 x JOIN: {ratio:.3f} {said}", met=ratio <= 0.2)
        ratio, more = times["candidates"] / raw, times["candidates"] - raw
        self.judge(f"candidates <= 1.2 x raw: {ratio:.2f} x, {more:+.2f} ms {said}", met=ratio <= 1.2)
        for name in ("page", "page, all kinds"):
            most = 1.8 * raw + 5
            self.judge(f"{name} <= 1.8 x raw + 5 ms = {most:.1f}: {times[name]:.1f} {said}", met=times[name] <= most)
        rerank = times["rerank"]
        self.judge(f"rerank <= 3 x raw or 8 ms: {rerank:.2f} {said}", met=rerank <= max(3 * raw, 8))

    def grip(self, found: Figures) -> None:
        self.say("\n4. Against Grip's scan, which reads and scores all lines")
        for sizes in found.values():
            for one in sizes:
                if "grip" in one:
                    self._judge_grip(one)
            break

    def _judge_grip(self, one: Figures) -> None:
        scan, quick = one["grip"]["as Grip"]["p50"], one["grip"]["search_lines"]["p50"]
        found, page = one["one workspace"]["candidates"]["p50"], one["one workspace"]["page"]["p50"]
        biggest = one["the biggest workspace"]["candidates"]["p50"]
        self.say(
            f"  {one['entries']:,} lines: Grip's formula for every word {scan:.0f} ms, the hub's implementation "
            f"{quick:.0f} ms; candidates {found:.2f} ms, biggest workspace {biggest:.2f} ms; a page {page:.1f} ms"
        )
        self.say(
            f"    {scan / found:,.0f} x; biggest workspace {scan / biggest:,.0f} x; the page {scan / page:,.0f} x"
        )
        if one["entries"] >= 100_000:
            goal = f"candidates >= 500 x faster than Grip at {one['entries']:,}: {scan / found:,.0f} x"
            self.judge(goal, met=scan / found >= 500)

    def ingest(self, found: Figures) -> None:
        self.figures["ingest"] = found
        self.say("\n5. Storing and indexing many short entries, rows per second")
        for vendor, rates in found.items():
            for name, rate in rates.items():
                self.say(f"  {vendor:<12}{name:<36}{rate:>9,.0f}")
        rates = found["SQLite"]
        together, apart = rates["plain rows, indexed together"], rates["plain rows, indexed by triggers"]
        self.judge(f"plain rows together >= 2.5 x by triggers: {together / apart:.2f} x", met=together / apart >= 2.5)
        alone = rates["of that, indexing and commit alone"]
        self.judge(
            f"indexing alone >= 60,000 rows/s: {alone:,.0f} (with the rows {together:,.0f})", met=alone >= 60_000
        )

    def lines(self, found: Figures) -> None:
        self.figures["lines"] = found
        whole = found["measured"] == found["lines"]
        how = "" if whole else f" (extrapolated from {found['measured']:,} lines)"
        ours, theirs = found["seconds"], found["seconds of all pairs"]
        self.say(f"\n6. Compaction of {found['lines']:,} lines: {ours:.2f} s; all pairs {theirs:.1f} s{how}")
        self.judge(f"compaction >= 100 x: {theirs / ours:,.0f} x", met=theirs / ours >= 100)
        self.judge(f"the same {found['kept']:,} of {found['measured']:,} lines are kept", met=found["same"])

    def hostile(self, found: Figures) -> None:
        self.say("\n7. Two hundred hostile queries, all kinds, milliseconds")
        for vendor, sizes in found.items():
            one = sizes[-1]
            for scope in SCOPES:
                times = one["hostile"][scope]
                self.say(
                    f"  {vendor:<12}{scope:<24}p50 {times['p50']:.0f}, p95 {times['p95']:.0f}, "
                    f"max {times['max']:.0f}; slowest {times['slowest'][0][1]!r}"
                )
                for error in times["errors"][:3]:
                    self.say(f"    {error}")
            errors = sum(len(one["hostile"][scope]["errors"]) for scope in SCOPES)
            most = max(one["hostile"][scope]["max"] for scope in SCOPES)
            said = f"({vendor}, {one['entries']:,} entries)"
            self.judge(f"no error, <= 250 ms: {errors} errors, {most:.0f} ms {said}", met=not errors and most <= 250)


def _mean(sums: Figures) -> Figures:
    return {
        part: {key: sums[part][key] / max(1, sums[part]["n"]) for key in MEASURES} for part in ("main", "adversarial")
    }


def _added(several: list[Figures]) -> Figures:
    return {
        part: {key: sum(one[part][key] for one in several) for key in ("n", *MEASURES)}
        for part in ("main", "adversarial")
    }


def _shown(mean: Figures) -> str:
    return ", ".join(f"{name} {mean[key]:.4f}" for key, name in MEASURES.items())


def _furthest(one: Figures, other: Figures) -> float:
    return max(abs(one[key] - other[key]) for key in MEASURES)
