"""Counting tokens without a download: a stated estimate."""

from __future__ import annotations

import math
import re

METHOD = "estimate"  # shown as ≈ on pages
_WIDE = re.compile(
    "[\u0e00-\u0eff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U0001f300-\U0001faff\U00020000-\U0003ffff]"
)


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text: characters / 4, but a whole token for each character of a wide script.

    English prose averages about four characters a token in current models; Chinese, Japanese, Korean, Thai, Lao
    and emoji about one. An empty text has none.
    """
    wide = len(_WIDE.findall(text))
    return wide + math.ceil((len(text) - wide) / 4)
