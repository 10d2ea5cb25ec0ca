"""The graph of a memory: people, projects, terms, sections, tags and sessions, and what connects them. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations

from memoryhub.graph.common_words import COMMON
from memoryhub.graph.keywords import WORD, is_keyword
from memoryhub.graph.memory_texts import MemoryText, Owner
from memoryhub.graph.names import Names, find_names
from memoryhub.lib.search.tokenizing import fold, stem
from memoryhub.lib.text_caches import text_cache

MOST_NODES = 2_000
_ENDING = re.compile("['’].*", re.DOTALL)  # a possessive one
KINDS = ("person", "project", "section", "tag", "session", "term")
LIMITS = {"person": 300, "project": 200, "section": 300, "tag": 200, "session": 500}  # the rest are terms
TOGETHER, PART, SIMILAR = 0, 1, 2  # kinds of edges
EDGES_PER_NODE = 5
Weights = defaultdict[tuple[int, int], float]
NAMED, NAMED_BONUS = ("person", "project"), 1.6  # whose edges people look for
LINKED_IN_TEXT = 9  # nodes of a text that are linked with each other
SMALL = 12  # texts up to which a term may occur once
MOST_SHARE = 0.25  # of the texts, beyond which a term says nothing


@dataclass
class Node:
    """``weight``: how much the memory says about it. ``first``, ``last``: when it was mentioned, if known."""

    key: str
    kind: str
    label: str = ""
    weight: float = 0.0
    count: int = 0
    first: datetime | None = None
    last: datetime | None = None
    labels: Counter[str] = field(default_factory=Counter)

    def add(self, text: MemoryText, label: str) -> None:
        self.weight += text.weight
        self.count += 1
        self.labels[label] += 1
        if text.at:
            self.first = min(self.first or text.at, text.at)
            self.last = max(self.last or text.at, text.at)


@dataclass(frozen=True)
class Edge:
    """A connection of two nodes, by their places. ``strength``: 0 to 1."""

    one: int
    other: int
    strength: float
    kind: int


@dataclass(frozen=True)
class MemoryGraph:
    """The nodes, the most important first, their edges, and how many nodes were left out."""

    nodes: list[Node]
    edges: list[Edge]
    left_out: int


def build_graph(
    texts: Sequence[MemoryText], similar: Iterable[tuple[str, str, float]] = (), *, most: int = MOST_NODES
) -> MemoryGraph:
    """Return the graph of texts. ``similar``: keys of two nodes with their similarity, 0 to 1. Deterministic."""
    names = find_names((text.text, text.section) for text in texts if text.names)
    found: dict[str, Node] = {}
    mentions = [_mentions(text, names, found) for text in texts]
    chosen, left_out = _chosen(found, len(texts), most)
    places = {node.key: place for place, node in enumerate(chosen)}
    together: Weights = defaultdict(float)
    part_of: Weights = defaultdict(float)
    for text, (owners, inner) in zip(texts, mentions, strict=True):
        held_by = sorted({places[key] for key in owners if key in places})
        named = sorted({places[key] for key in inner if key in places} - set(held_by))
        for pair in combinations(named[:LINKED_IN_TEXT], 2):
            together[pair] += text.weight
        for owner in held_by:
            for place in (*named, *(other for other in held_by if other > owner)):
                part_of[min(owner, place), max(owner, place)] += text.weight
    edges = _strongest(chosen, together, part_of)
    edges += _similar_edges(similar, places, {(edge.one, edge.other) for edge in edges})
    return _connected(chosen, edges, left_out)


def term_key(word: str) -> str:
    """Return the key of a word's node; a possessive ending doesn't count."""
    bare = _ENDING.sub("", word)
    return f"term:{stem(fold(bare))}"


def _mentions(text: MemoryText, names: Names, found: dict[str, Node]) -> tuple[list[str], list[str]]:
    """Count what a text mentions; return the keys of the nodes it belongs to, and of those in it."""
    inner: dict[str, tuple[str, str]] = {}
    for token in dict.fromkeys(WORD.findall(text.text)):
        folded = fold(token)
        if folded in names.people:
            label = names.people[folded]
            inner.setdefault(f"person:{fold(label)}", ("person", label))
        elif folded in names.projects:
            inner.setdefault(f"project:{folded}", ("project", names.projects[folded]))
        elif key := _term_key(token):
            inner.setdefault(key, ("term", _ENDING.sub("", token)))
    owners = {owner.key: owner for owner in [*text.owners, *_named_in_section(text, names)]}
    for key, owner in owners.items():
        _node(found, key, owner.kind).add(text, owner.label)
    for key, (kind, label) in inner.items():
        if key not in owners:
            _node(found, key, kind).add(text, label)
    return list(owners), list(inner)


def _named_in_section(text: MemoryText, names: Names) -> list[Owner]:
    """Return the projects that the title of the text's section names."""
    words = dict.fromkeys(fold(word) for word in WORD.findall(text.section))
    return [Owner(f"project:{word}", "project", names.projects[word]) for word in words if word in names.projects]


def _node(found: dict[str, Node], key: str, kind: str) -> Node:
    if key not in found:
        found[key] = Node(key, kind)
    return found[key]


@text_cache(100_000)
def _term_key(token: str) -> str:
    """Return the key of a token's node, "" if it is no keyword."""
    word = token.lower().replace("’", "'").partition("'")[0]
    if word in COMMON or not is_keyword(word):
        return ""
    return term_key(word)


def _chosen(found: dict[str, Node], texts: int, most: int) -> tuple[list[Node], int]:
    """Return the most important nodes, and the number of those left out."""
    least = 1 if texts <= SMALL else 2
    too_common = max(MOST_SHARE * texts, SMALL)
    by_kind: defaultdict[str, list[tuple[float, str, Node]]] = defaultdict(list)
    for node in found.values():
        if node.kind == "term" and not (least <= node.count <= too_common and node.weight >= 1.5 * least):
            continue
        node.label = max(node.labels.items(), key=lambda item: (item[1], item[0].islower(), item[0]))[0]
        rarity = math.log(1 + texts / node.count) if node.kind == "term" else 1.0
        by_kind[node.kind].append((-node.weight * rarity, node.key, node))
    total = sum(map(len, by_kind.values()))
    chosen: list[Node] = []
    for kind in KINDS:
        room = min(LIMITS.get(kind, most), most - len(chosen))
        chosen += [node for _, _, node in sorted(by_kind[kind], key=lambda item: item[:2])[:room]]
    chosen.sort(key=lambda node: (-node.weight, node.key))
    return chosen, total - len(chosen)


def _strongest(nodes: Sequence[Node], together: Weights, part_of: Weights) -> list[Edge]:
    """Return the strongest edges of each node, by how much of both nodes' weight they share."""
    strengths: dict[tuple[int, int], tuple[float, int]] = {}
    for kind, counts in ((TOGETHER, together), (PART, part_of)):
        for (one, other), weight in counts.items():
            named = nodes[one].kind in NAMED or nodes[other].kind in NAMED
            share = weight / math.sqrt(nodes[one].weight * nodes[other].weight)
            strength = min(1.0, share * (NAMED_BONUS if named else 1))
            strengths[one, other] = max(strengths.get((one, other), (0.0, kind)), (strength, kind))
    by_node: defaultdict[int, list[tuple[float, int, int]]] = defaultdict(list)
    for (one, other), (strength, _kind) in strengths.items():
        by_node[one].append((-strength, one, other))
        by_node[other].append((-strength, one, other))
    kept = {(one, other) for rows in by_node.values() for _, one, other in sorted(rows)[:EDGES_PER_NODE]}
    return [
        Edge(one, other, round(strengths[one, other][0], 3), strengths[one, other][1]) for one, other in sorted(kept)
    ]


def _similar_edges(
    similar: Iterable[tuple[str, str, float]], places: dict[str, int], known: set[tuple[int, int]]
) -> list[Edge]:
    edges = []
    for key, other_key, similarity in similar:
        one, other = places.get(key), places.get(other_key)
        if one is None or other is None or one == other or (min(one, other), max(one, other)) in known:
            continue
        known.add((min(one, other), max(one, other)))
        edges.append(Edge(min(one, other), max(one, other), round(max(0.1, min(1.0, similarity)), 3), SIMILAR))
    return edges


def _connected(nodes: list[Node], edges: list[Edge], left_out: int) -> MemoryGraph:
    """Return the graph without terms that nothing connects."""
    linked = {place for edge in edges for place in (edge.one, edge.other)}
    kept = [place for place, node in enumerate(nodes) if place in linked or node.kind != "term"]
    new = {place: number for number, place in enumerate(kept)}
    moved = [Edge(new[edge.one], new[edge.other], edge.strength, edge.kind) for edge in edges]
    return MemoryGraph([nodes[place] for place in kept], moved, left_out + len(nodes) - len(kept))
