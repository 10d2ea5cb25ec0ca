"""Request bodies of the REST API. Unknown fields are rejected."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, WithJsonSchema

from memoryhub.lib.document_size import MAX_DOCUMENT_CHARS
from memoryhub.lib.validation import MAX_REASON, VISIBLE_LINE
from sessions_app.services.parsing import KINDS, ROLES

NOT_BLANK = r"\S"  # at least one visible character
Key = Annotated[
    str, Field(min_length=1, max_length=512, pattern=VISIBLE_LINE, description="For example cli:main or telegram:42.")
]
Category = Literal["user_preference", "project_decision", "error_pattern", "system_behavior", "learned_fact"]
ENTRY = {
    "type": "object",
    "description": "An OpenAI chat message: role, content, tool_calls, tool_call_id, name; optionally a timestamp "
    "(ISO 8601) and a kind. A tool result names its call. Other fields are kept. Or a framework's message: an item "
    "of the Responses API, an Anthropic message with content blocks, a LangChain, pydantic-ai or LlamaIndex message.",
    "anyOf": [
        {
            "properties": {
                "role": {"enum": list(ROLES)},
                "kind": {"enum": list(KINDS)},
                "content": {"type": ["string", "array"]},
            },
            "anyOf": [{"required": ["role", "content"]}, {"required": ["kind", "content"]}],
        },
        {"properties": {"type": {"type": "string"}}, "required": ["type"]},
        {"properties": {"parts": {"type": "array"}}, "required": ["kind", "parts"]},
        {"properties": {"blocks": {"type": "array"}}, "required": ["role", "blocks"]},
    ],
}
Entries = Annotated[
    list[Annotated[dict[str, Any], WithJsonSchema(ENTRY)]],
    Field(min_length=1, max_length=1000, description="Added in this order, all or none."),
]
Reason = Annotated[str, Field(max_length=MAX_REASON, description="The reason, in one sentence. People read it.")]
DocumentText = Annotated[str, Field(max_length=MAX_DOCUMENT_CHARS)]


class Body(Schema):
    model_config = ConfigDict(extra="forbid")


class NewSession(Body):
    key: Key
    title: Annotated[str, Field(max_length=500)] = ""


class NewEntries(Body):
    entries: Entries


class NewStart(Body):
    entries: Annotated[
        list[Annotated[dict[str, Any], WithJsonSchema(ENTRY)]],
        Field(max_length=10_000, description="The entries of the new epoch, all or none."),
    ] = []


class NewEntriesOf(NewEntries):
    session: Key


class SessionFile(Body):
    name: Annotated[str, Field(min_length=1, max_length=200, description="Must end in .jsonl or .json.")]
    content: Annotated[str, Field(min_length=1, max_length=2_000_000, description="Import larger files on the page.")]


class Compression(Body):
    prompt: Annotated[
        str, Field(max_length=4_000, description="Instructions for the summary. Default: the workspace's.")
    ] = ""


class DocumentWrite(Body):
    content: DocumentText
    reason: Reason = ""


class DocumentProposal(DocumentWrite):
    base: Annotated[int, Field(ge=0, lt=2**31)] | None = None


class NewFact(Body):
    fact: Annotated[str, Field(min_length=1, max_length=2_000, pattern=NOT_BLANK, description="One sentence.")]


class HistoryNote(Body):
    text: Annotated[str, Field(min_length=1, max_length=20_000, pattern=NOT_BLANK)]
    session: Annotated[str, Field(max_length=512)] = ""


class NewKnowledge(Body):
    content: Annotated[str, Field(min_length=1, max_length=20_000, pattern=NOT_BLANK)]
    category: Annotated[str, Field(max_length=100, description="An unknown category becomes learned_fact.")] = (
        "learned_fact"
    )
    source: Annotated[str, Field(max_length=500)] = ""
    tags: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=50)] = []


class KnowledgeChange(Body):
    """Fields that aren't sent stay unchanged."""

    content: Annotated[str, Field(min_length=1, max_length=20_000, pattern=NOT_BLANK)] | None = None
    category: Category | None = None
    source: Annotated[str, Field(max_length=500)] | None = None
    tags: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=50)] | None = None


class NewObservation(Body):
    category: Literal["finding", "insight", "lesson"]
    content: Annotated[str, Field(min_length=1, max_length=4_000, pattern=NOT_BLANK)]
    source: Annotated[str, Field(max_length=500)] = ""


class NewObservations(Body):
    observations: Annotated[list[NewObservation], Field(min_length=1, max_length=100)]


class ValueWrite(Body):
    value: Annotated[str, Field(max_length=200_000)]


class CacheQuestion(Body):
    message: Annotated[str, Field(min_length=1)]
    model: Annotated[str, Field(max_length=200)]


class CacheAnswer(CacheQuestion):
    response: str


class TextToExtract(Body):
    text: Annotated[str, Field(min_length=1, pattern=NOT_BLANK)]
    source: Annotated[str, Field(max_length=500)] = ""
