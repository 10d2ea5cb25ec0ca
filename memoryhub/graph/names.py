"""Find the names of people and projects in texts, by the words around them. Pure.

There is no list of names: a capitalised word counts as a name if enough of its surroundings say so, and if it is
hardly ever written in lower case. Scripts without capital letters have no names here; their words are terms.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from memoryhub.graph.common_words import NO_NAMES
from memoryhub.lib.search.tokenizing import fold

_CAPITAL, _SMALL = (
    "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĘĚĞĢĪİĶŁĻŃŇŐŒŘŚŞŠŢŤŪŮŰŹŻŽА-ЯЁΑ-Ω",
    "a-zß-öø-ÿāăąćčďđēęěğģīıķłļńňőœřśşšţťūůűźżžа-яёα-ωά-ώ",
)
_NAME = f"[{_CAPITAL}][{_SMALL}]{{1,20}}(?:-[{_CAPITAL}][{_SMALL}]{{1,20}})?(?![\\w-])"
_BEFORE = "(?<![\\w@/#.-])"
ENOUGH = 2  # points that make a name
MOST_LOWER = 0.3  # share of lower-case uses of a word that is no name
_VERBS = (
    "wants|prefers|asked|asks|said|says|likes|dislikes|does|keeps|reads|leads|works|owns|lives|told|tells|thinks|wrote|"
    "writes|agreed|decided|joined|approved|moved|reviews|reviewed|handles|maintains|takes|speaks|suggested|reported|"
    "möchte|will|sagt|bittet|leitet|arbeitet|veut|préfère|travaille|quiere|prefiere|trabaja|vuole|preferisce|lavora"
)
_INTRODUCTIONS = (
    "my name is|name is|name:|I'm|I am|call me|this is|ich bin|ich heiße|mein name ist|je m'appelle|je suis|me llamo|"
    "mi chiamo"
)
_ADDRESSES = (
    "with|by|ask|asked|tell|told|ping|cc|thanks|thank|hi|hello|hey|dear|morning|mit|frag|hallo|avec|con|and|und"
)
PERSON_CUES: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(f"{_BEFORE}({_NAME})(?: {_NAME})? (?:{_VERBS})(?!\\w)"), 2),
    (re.compile(f"(?<!\\w)(?i:{_INTRODUCTIONS}) ({_NAME})"), 2),
    (re.compile(f"{_BEFORE}({_NAME}) {_NAME}(?: \\([^)\n]{{1,30}}\\))?:"), 1),
    (re.compile(f"(?<=, )({_NAME}) (?:the|for the|on the) (?=[a-z])"), 1),
    (re.compile(f"(?<!\\w)(?i:{_ADDRESSES}) ({_NAME})"), 1),
)
_PEOPLE_SECTION = re.compile(r"\b(?:people|team|contacts?|family|friends|users?|crew|personen|équipe|equipo)\b", re.I)
_FIRST_NAME = re.compile(f"^[*_\\s]*({_NAME})")
_FULL_NAME = re.compile(f"{_BEFORE}({_NAME}) ({_NAME})")
_ADDRESS = re.compile(r"(?<![\w.])([a-z]{2,20})(?:[._]([a-z]{2,20}))?@[a-z]")
_ADDRESSES_AND_LINKS = re.compile(r"\S*(?:[@/_]|\w\.\w)\S*")
_WORDS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_TITLE = f"[{_CAPITAL}][\\w-]{{1,40}}"
_PROJECT_CUES = (
    re.compile(
        f'(?i:\\b(?:project|projekt|projet|proyecto|progetto|repo|repository|codebase|product))[: ]+[`"“]?({_TITLE})'
    ),
    re.compile(f"{_BEFORE}({_TITLE}) (?:project|repo|repository|codebase|team|app)\\b"),
    re.compile(r"(?i:\b(?:project|repo|repository|codebase))[: ]+`([\w-]{2,40})`"),
)


@dataclass
class Names:
    """The names found: by folded word, the label of the person or project that it names."""

    people: dict[str, str] = field(default_factory=dict)
    projects: dict[str, str] = field(default_factory=dict)


def find_names(texts: Iterable[tuple[str, str]]) -> Names:
    """Return the people and projects of texts, each with the title of its section or "".

    The texts should be the memory itself and what people wrote, not what programs returned.
    """
    people: Counter[str] = Counter()
    projects: Counter[str] = Counter()
    full: defaultdict[str, Counter[str]] = defaultdict(Counter)
    words: Counter[str] = Counter()
    known: set[str] = set()
    seen: set[tuple[str, int]] = set()
    for text, section in texts:
        words.update(_WORDS.findall(_ADDRESSES_AND_LINKS.sub(" ", text)))
        _add_people(people, text, section, seen)
        projects.update({name: ENOUGH for cue in _PROJECT_CUES for name in cue.findall(f"{section}\n{text}")})
        for first, last in _FULL_NAME.findall(text):
            full[first][last] += 1
        if "@" in text:
            known.update(part for parts in _ADDRESS.findall(text) for part in parts if part)
    for name in list(people | full):
        people[name] += ENOUGH if fold(name) in known else 0
    return _decided(people, projects, full, words)


def _add_people(points: Counter[str], text: str, section: str, seen: set[tuple[str, int]]) -> None:
    """Add the points of the capitalised words of a text; each cue counts once for a word."""
    for number, (cue, weight) in enumerate(PERSON_CUES):
        for name in cue.findall(text):
            if (name, number) not in seen:
                seen.add((name, number))
                points[name] += weight
    if _PEOPLE_SECTION.search(section) and (found := _FIRST_NAME.match(text)):
        points[found[1]] += ENOUGH


def _decided(
    people: Counter[str], projects: Counter[str], full: dict[str, Counter[str]], words: Counter[str]
) -> Names:
    names = Names()
    for name, points in projects.items():
        if points >= ENOUGH and _is_name(name, words):
            names.projects[fold(name)] = name
    firsts = [name for name, points in people.items() if points >= ENOUGH and _is_name(name, words)]
    firsts = [name for name in firsts if fold(name) not in names.projects]
    lasts = {last for name in firsts for last in full.get(name, ())}
    for name in sorted(firsts, key=lambda name: (name in lasts, -people[name], name)):
        if fold(name) in names.people:
            continue  # the last name of somebody
        last, count = max(full.get(name, Counter()).items(), key=lambda item: (item[1], item[0]), default=("", 0))
        has_last = last and _is_name(last, words) and fold(last) not in names.projects and count * 12 >= words[name]
        label = f"{name} {last}" if has_last else name
        names.people[fold(name)] = label
        if has_last:
            names.people.setdefault(fold(last), label)
    return names


def _is_name(name: str, words: Counter[str]) -> bool:
    lower = name.lower()
    if lower in NO_NAMES or len(name) < 2:
        return False
    return words[lower] <= MOST_LOWER * (words[lower] + words[name])
