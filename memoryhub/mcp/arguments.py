"""Types of the tools' arguments, with their limits and descriptions."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from memoryhub.lib.validation import MAX_REASON, clean_text
from sessions_app.models.conversations import KEY_LENGTH

MAX_QUERY = 2_000
STORABLE = AfterValidator(clean_text)  # replaces characters that databases can't store
ToolAnswer = tuple[str, BaseModel]

Key = Annotated[str, Field(min_length=1, max_length=KEY_LENGTH, description="The exact key."), STORABLE]
Query = Annotated[str, Field(min_length=1, max_length=MAX_QUERY, description="The search words."), STORABLE]
Cursor = Annotated[str, Field(max_length=2_000, description="next_cursor of the previous page.")]
Name = Annotated[
    str, Field(min_length=1, max_length=500, description="The document's name, such as MEMORY.md."), STORABLE
]
Reason = Annotated[
    str, Field(max_length=MAX_REASON, description="The reason, for the person who reviews it."), STORABLE
]
