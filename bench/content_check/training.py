"""Make the weights of ``memoryhub.lib.content_check.resemblance`` from tables of instructions and facts.

    python bench/content_check/training.py [--validate]

The tables are LEARNED and the files in texts/ (see ``cases``). ``--validate`` writes nothing: for each table, it
prints what weights made from the other tables say about it, and what the whole check says.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
from cases import FOLDER, NAMES, Table, table, templates, texts_in

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from memoryhub.lib.content_check import resemblance  # noqa: E402
from memoryhub.lib.content_check.check import check_text  # noqa: E402
from memoryhub.lib.content_check.features import FEATURES, features_of  # noqa: E402
from memoryhub.lib.content_check.normalising import fold  # noqa: E402

LEARNED = ("first", "second", "third", "unseen", "unseen_second", "indirect", "avoiding", "later", "last")
THRESHOLD = 1.5  # of the score: a higher one holds fewer facts, and fewer instructions
ROUNDS = 15
RATE = 0.1
DECAY = 1e-5
SEED = 1


def main(*, validate: bool) -> None:
    known = tables()
    if validate:
        cross_validate(known)
    else:
        resemblance.WEIGHTS.write_bytes(packed(*trained(list(known.values()))))


def tables() -> dict[str, Table]:
    """Return the tables to learn from, by name."""
    made = {name: table(name) for name in LEARNED}
    made["first"][1].extend(text.format(n=NAMES[len(text) % 10], d=11) for _, text in templates())
    return made | {path.stem: texts_in(path) for path in sorted((FOLDER / "texts").glob("*.txt"))}


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
    for name, own in known.items():
        weights, constant = trained([other for key, other in known.items() if key != name])
        shares = []
        for texts in own:
            scores = [weights[found].sum() / np.sqrt(len(found)) + constant for found in vectors(texts)]
            shares.append(sum(score > THRESHOLD for score in scores) / len(scores))
        held = [sum(bool(check_text(text)) for text in texts) / len(texts) for texts in own]
        print(f"{name}: resembling {shares[0]:.1%} and {shares[1]:.1%}, check {held[0]:.1%} and {held[1]:.1%}")


if __name__ == "__main__":
    main(validate="--validate" in sys.argv)
