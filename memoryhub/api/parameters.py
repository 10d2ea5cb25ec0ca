"""Parameters shared by several operations."""

from typing import Annotated

from ninja import Path, Query
from pydantic import AfterValidator

from memoryhub.lib.validation import clean_text
from memoryhub.search import KINDS

RowId = Annotated[int, Path(ge=1, lt=2**63)]
Name = Annotated[str, Path(min_length=1, max_length=200), AfterValidator(clean_text)]
Cursor = Annotated[str, Query(max_length=2_000, description="The value of next in the previous page.")]
Limit = Annotated[int, Query(ge=1, le=200)]
Text = Annotated[str, Query(max_length=512)]
Kinds = Annotated[
    str,
    Query(
        pattern=rf"^(({'|'.join(KINDS)})(,({'|'.join(KINDS)}))*)?$",
        max_length=200,
        description="Kinds separated by commas, for example entry,memory. Default: all.",
    ),
]
SharedWorkspace = Annotated[
    str, Query(max_length=64, description="The slug of a workspace that the token may read too. Default: its own.")
]
Epoch = Annotated[int | None, Query(ge=0, lt=2**31)]
MaxMessages = Annotated[int, Query(ge=0, le=5_000, description="Maximum number of entries; 0 for all.")]
AsText = Annotated[bool, Query(description="Return the context as one text, too, in AgTerm's format.")]
MaxTokens = Annotated[int | None, Query(ge=0, lt=2**31, description="Default: the workspace's limit.")]
