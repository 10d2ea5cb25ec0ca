"""Counting tokens without a download: exact where an encoder is at hand, else a stated estimate."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

try:
    import toktok
except ImportError:  # the extra "tokens" is not installed
    toktok = None

ESTIMATE = "estimate"
_WIDE = re.compile(
    "[\u0e00-\u0eff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U0001f300-\U0001faff\U00020000-\U0003ffff]"
)
# Which encoding a family of models counts in; the longest beginning of the name wins.
_ENCODINGS = {
    "gpt-oss": "o200k_harmony",
    "gpt-4o": "o200k_base",
    "gpt-4.1": "o200k_base",
    "gpt-4": "cl100k_base",
    "gpt-3.5": "cl100k_base",
    "gpt-5": "o200k_base",
    "o1": "o200k_base",
    "o3": "o200k_base",
    "o4": "o200k_base",
    "qwen3.5": "qwen3.5",
}


@dataclass(frozen=True)
class TokenCounter:
    """``count`` gives a text's tokens; ``method`` is the encoding that was used, or ``estimate``."""

    method: str
    count: Callable[[str], int]


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text: characters / 4, but a whole token for each character of a wide script.

    English prose averages about four characters a token in current models; Chinese, Japanese, Korean, Thai, Lao
    and emoji about one. An empty text has none. ``make bench`` measures how far this lies from exact counts.
    """
    wide = len(_WIDE.findall(text))
    return wide + math.ceil((len(text) - wide) / 4)


@cache
def counter_for(model: str) -> TokenCounter:
    """Return the exact counter of a model where its encoder is installed, else the estimate.

    The name may carry its provider before a slash. Encoders come with the extra ``tokens`` (toktok-rs) and hold
    their vocabularies: nothing is ever downloaded.
    """
    name = model.rpartition("/")[2].lower()
    fitting = [start for start in _ENCODINGS if name.startswith(start)]
    if toktok is None or not fitting:
        return TokenCounter(ESTIMATE, count_tokens)
    encoding = _ENCODINGS[max(fitting, key=len)]
    return TokenCounter(encoding, lambda text: int(toktok.batch_count([text], encoding)[0]))
