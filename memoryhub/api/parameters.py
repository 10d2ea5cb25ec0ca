"""Parameters that several operations take."""

from __future__ import annotations

from typing import Annotated

from ninja import Path, Query
from pydantic import AfterValidator

from memoryhub.lib.validation import clean_text
from memoryhub.search import KINDS

RowId = Annotated[int, Path(ge=1, lt=2**63)]
Name = Annotated[str, Path(min_length=1, max_length=200), AfterValidator(clean_text)]
Cursor = Annotated[str, Query(max_length=2_000, description="What an earlier answer gave as next.")]
Limit = Annotated[int, Query(ge=1, le=200)]
Text = Annotated[str, Query(max_length=512)]
Kinds = Annotated[
    str,
    Query(
        pattern=rf"^(({'|'.join(KINDS)})(,({'|'.join(KINDS)}))*)?$",
        max_length=200,
        description="Separated by commas, for example entry,memory; all of them where there is none.",
    ),
]
Epoch = Annotated[int | None, Query(ge=0, lt=2**31)]
MaxMessages = Annotated[int, Query(ge=0, le=5_000, description="Of the session's entries; 0: as many as there are.")]
MaxTokens = Annotated[int | None, Query(ge=0, lt=2**31, description="Of all messages; else the workspace's limit.")]
