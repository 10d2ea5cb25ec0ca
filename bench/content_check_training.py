"""Make the weights of ``memoryhub.lib.content_check.resemblance`` from tables of instructions and facts.

    python bench/content_check_training.py [--validate]

The tables are those of content_check*_cases.py, except the ones that the check was never tuned on, and those in
content_check_texts/, where each line begins with + for an instruction or - for a fact. ``--validate`` writes nothing:
for each table, it prints what weights made from the other tables say about it, and what the whole check says.
"""

from __future__ import annotations

import random
import sys
from itertools import chain
from pathlib import Path

import content_check_avoiding_cases as avoiding
import content_check_cases as cases
import content_check_fresh_cases as fresh
import content_check_last_cases as last
import content_check_later_cases as later
import content_check_unseen_cases as unseen
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from memoryhub.lib.content_check import resemblance  # noqa: E402
from memoryhub.lib.content_check.check import check_text  # noqa: E402
from memoryhub.lib.content_check.features import FEATURES, features_of  # noqa: E402
from memoryhub.lib.content_check.normalising import fold  # noqa: E402

TEXTS = Path(__file__).parent / "content_check_texts"
THRESHOLD = 1.5  # of the score: a higher one holds fewer facts, and fewer instructions
ROUNDS = 15
RATE = 0.1
DECAY = 1e-5
SEED = 1
Table = tuple[list[str], list[str]]  # instructions and facts


def main(*, validate: bool) -> None:
    known = tables()
    if validate:
        cross_validate(known)
    else:
        resemblance.WEIGHTS.write_bytes(packed(*trained(list(known.values()))))


def tables() -> dict[str, Table]:
    """Return the tables to learn from, by name."""
    templates = [
        template.format(n=cases.NAMES[len(template) % 10], d=11) for template in chain(*cases.TEMPLATES.values())
    ]
    made = {
        "first": (cases.INSTRUCTIONS, templates),
        "second": (cases.MORE_INSTRUCTIONS, cases.MORE_FACTS),
        "third": (cases.HELD_OUT_INSTRUCTIONS, cases.HELD_OUT_FACTS),
        "unseen": (unseen.UNSEEN_INSTRUCTIONS, unseen.UNSEEN_FACTS),
        "unseen, second": (unseen.UNSEEN_SECOND_INSTRUCTIONS, unseen.UNSEEN_SECOND_FACTS),
        "indirect": (fresh.INDIRECT_INSTRUCTIONS, fresh.INDIRECT_FACTS),
        "avoiding": (avoiding.AVOIDING_INSTRUCTIONS, avoiding.AVOIDING_FACTS),
        "later": (later.LATER_INSTRUCTIONS, later.LATER_FACTS),
        "last": (last.LAST_INSTRUCTIONS, last.LAST_FACTS),
    }
    return made | {path.stem: texts_in(path) for path in sorted(TEXTS.glob("*.txt"))}


def texts_in(path: Path) -> Table:
    """Return the instructions and the facts of a file."""
    lines = path.read_text().splitlines()
    instructions, facts = ([line[2:] for line in lines if line[:2] == mark] for mark in ("+ ", "- "))
    assert len(instructions) + len(facts) == len(lines), path
    return instructions, facts


def vectors(texts: list[str]) -> list[np.ndarray]:
    return [np.array(features_of(fold(text))) for text in texts]


def trained(tables: list[Table]) -> tuple[np.ndarray, float]:
    """Return the weights of the features, and the constant, of a logistic regression (AdaGrad)."""
    samples = [
        (found, label)
        for table in tables
        for label, texts in zip((1, 0), table, strict=True)
        for found in vectors(texts)
    ]
    weights, squares, constant = np.zeros(FEATURES), np.full(FEATURES, 1e-6), 0.0
    order = random.Random(SEED)
    for _ in range(ROUNDS):
        order.shuffle(samples)
        for found, label in samples:
            size = np.sqrt(len(found))
            error = 1 / (1 + np.exp(-(weights[found].sum() / size + constant))) - label
            slope = error / size + DECAY * weights[found]
            squares[found] += slope * slope
            weights[found] -= RATE * slope / np.sqrt(squares[found])
            constant -= 0.02 * error
    return weights, float(constant)


def packed(weights: np.ndarray, constant: float) -> bytes:
    """Return weights as a file of one byte each. Makes the threshold 0."""
    step = float(np.abs(weights).max() / 127)
    steps = np.round(weights / step).astype(np.int8)
    return resemblance.HEADER.pack(step, constant - THRESHOLD) + steps.tobytes()


def cross_validate(known: dict[str, Table]) -> None:
    for name, table in known.items():
        weights, constant = trained([other for key, other in known.items() if key != name])
        shares = []
        for texts in table:
            scores = [weights[found].sum() / np.sqrt(len(found)) + constant for found in vectors(texts)]
            shares.append(sum(score > THRESHOLD for score in scores) / len(scores))
        held = [sum(bool(check_text(text)) for text in texts) / len(texts) for texts in table]
        print(f"{name}: resembling {shares[0]:.1%} and {shares[1]:.1%}, check {held[0]:.1%} and {held[1]:.1%}")


if __name__ == "__main__":
    main(validate="--validate" in sys.argv)
