"""Words that a mistyped word may stand for: up to two letters are missing, superfluous, wrong or swapped."""

from __future__ import annotations

from collections.abc import Iterator

from memoryhub.lib.search.tokenizing import fold

MIN_LETTERS, MAX_LETTERS = 4, 24  # of words that are corrected
TWO_EDITS = 6  # letters from which two edits are considered
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_BLOCK = 0x80  # characters: about one alphabet


def one_edit(word: str) -> set[str]:
    """Return all words at distance 1, in the alphabets of the word's letters."""
    letters = _alphabet(word)
    found = slips(word)
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        found.update(before + letter + after for letter in letters)
        found.update(before + letter + after[1:] for letter in letters if after)
    return found - {word}


def two_slips(word: str) -> set[str]:
    """Return the words after two slips of the hand."""
    return {other for one in slips(word) for other in slips(one)} - {word}


def slips(word: str) -> set[str]:
    """Return the words after one slip of the hand: a letter is doubled, left out or swapped with the next."""
    return {*_each_slip(word), *swaps(word)}


def swaps(word: str) -> set[str]:
    """Return the words with two adjacent letters swapped."""
    pairs = range(len(word) - 1)
    return {word[:place] + word[place + 1] + word[place] + word[place + 2 :] for place in pairs} - {word}


def _each_slip(word: str) -> Iterator[str]:
    for place in range(len(word)):
        before, after = word[:place], word[place:]
        yield before + after[1:]
        yield before + after[0] + after


def _alphabet(word: str) -> list[str]:
    blocks = {ord(letter) // _BLOCK * _BLOCK for letter in word if not letter.isascii()}
    signs = [chr(code) for block in blocks for code in range(block, block + _BLOCK)]
    others = [sign for sign in signs if sign.isalpha() and fold(sign) == sign]
    return [*(_LATIN if any(letter.isascii() for letter in word) else ""), *others]


def distance(one: str, other: str, most: int) -> int:
    """Return the number of edits between two words, or ``most`` + 1 if there are more.

    Swapping two adjacent letters is one edit ("optimal string alignment").
    """
    if abs(len(one) - len(other)) > most or len(set(one) ^ set(other)) > 2 * most:
        return most + 1
    previous: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        earlier, previous, row = previous, row, [i]
        for j, sign in enumerate(other, start=1):
            edits = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (letter != sign))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == sign:
                edits = min(edits, earlier[j - 2] + 1)
            row.append(edits)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)
