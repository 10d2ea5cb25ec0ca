"""Count tokens: exactly if an encoder is installed, otherwise as an estimate. Nothing is ever downloaded."""

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
# Encodings by prefix of the model's name; the longest matching prefix wins.
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
    """A function that counts a text's tokens. ``method``: the encoding it uses, or ``estimate``."""

    method: str
    count: Callable[[str], int]


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text: one for each Chinese, Japanese, Korean, Thai or Lao character and emoji, and
    one for every four other characters. ``make bench`` compares this with exact counts.
    """
    wide = len(_WIDE.findall(text))
    return wide + math.ceil((len(text) - wide) / 4)


@cache
def counter_for(model: str) -> TokenCounter:
    """Return the exact counter for a model if its encoder is installed, otherwise the estimate.

    The model's name may have a provider prefix (``openai/gpt-4o``). Encoders and their vocabularies come with the
    extra ``tokens`` (toktok-rs).
    """
    name = model.rpartition("/")[2].lower()
    prefixes = [prefix for prefix in _ENCODINGS if name.startswith(prefix)]
    if toktok is None or not prefixes:
        return TokenCounter(ESTIMATE, count_tokens)
    encoding = _ENCODINGS[max(prefixes, key=len)]
    return TokenCounter(encoding, lambda text: int(toktok.batch_count([text], encoding)[0]))
