"""Two hundred hostile queries: stop words, punctuation, operators, very common words, very short and long ones."""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from itertools import pairwise

from memoryhub.lib.search.tokenizing import STOP_WORDS

SIGNS = [
    '"',
    "'",
    "(",
    ")",
    "*",
    ":",
    "^",
    "-",
    "+",
    "%",
    "_",
    "\\",
    "\x00",
    "{content}:",
    "NEAR(",
    "--",
    ";",
    "''",
    "&",
]
OPERATORS = [
    "AND",
    "OR",
    "NOT",
    "NEAR",
    "-",
    "OR OR",
    "AND NOT",
    '""',
    "kind:",
    "before:",
    "has:withdrawn",
    "-has:tool",
]
OTHERS = [
    "数据",
    "데이터",
    "データ",
    "ข้อมูล",
    "بيانات",
    "נתונים",
    "ß",
    "ﬁ",
    "İ",
    "👩‍👩‍👧",
    "é" * 40,
    "\u202e",
    "\ud83d",
    "𠀀" * 60,
]
FIELDS = [
    "kind:message",
    "role:user",
    "author:Ada",
    "channel:chat",
    "before:2030",
    "after:2001",
    "session:1",
    "has:time",
]


def hostile_texts(words: Sequence[str], count: int = 200) -> list[str]:
    """Return ``count`` queries. ``words`` are those of the searched texts, most common first."""
    own = random.Random(17)
    telling = [word for word in words if word not in STOP_WORDS]
    stop = [word for word in words if word in STOP_WORDS]
    fixed = [
        "",
        " " * 512,
        " ".join(stop[:12]),
        " ".join(stop)[:512],
        " ".join(telling[:12]),
        " ".join(telling[:100])[:512],
        " ".join(string.ascii_lowercase),
        "the",
        "a" * 512,
        "a " * 256,
        "(" * 512,
        '"' * 511,
        "-" * 512,
        " ".join(OPERATORS),
        "数据库连接池的上限是多少",
        "数" * 512,
        " ".join(OTHERS)[:512],
        *(f'"{telling[place]} {telling[place + 1]}"' for place in range(8)),
        *(f'"{one} {other}"' for one, other in pairwise(stop[:9])),
        *(f"+{one} +{other}" for one, other in zip(telling[:8], telling[8:16], strict=True)),
        *(f"{one} -{other}" for one, other in zip(telling[:8], telling[8:16], strict=True)),
        *(f"-{word}" for word in (*stop[:4], *telling[:4])),
        *(word[:3] for word in telling[:8]),
        *(word[:1] for word in telling[:4]),
        *(f"{word} {field}" for word, field in zip(telling, FIELDS, strict=False)),
        *(f"{' OR '.join(telling[place : place + 6])}" for place in range(0, 24, 6)),
        *(f"{telling[place]}_{telling[place + 1]} {telling[place]}.{telling[place + 2]}" for place in range(4)),
        *SIGNS,
        *OPERATORS,
        *OTHERS,
    ]
    kinds = [telling[:40], stop, SIGNS, OPERATORS, OTHERS, list(string.ascii_lowercase), FIELDS]
    while len(fixed) < count:
        size = own.choice((2, 5, 12, 60))
        fixed.append(" ".join(own.choice(own.choice(kinds)) for _ in range(size))[:600])
    return fixed[:count]
