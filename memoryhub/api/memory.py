"""Memory documents, proposals and the history log over REST."""

from __future__ import annotations

import re
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Header, Query, Router, Status

from memoryhub.agents.operations import memory as operations
from memoryhub.api import requests, responses
from memoryhub.api.auth import APPEND, EDIT, READ, caller_of
from memoryhub.api.parameters import Cursor, Limit, Name, RowId, SharedWorkspace, Text
from memoryhub.lib.errors import Invalid

router = Router(tags=["Memory documents and history"])
_TAG = re.compile(r'"(\d{1,9})"')
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description='The revision it is based on, such as "12"; "0" for a new document.'),
]


class BaseMissing(Invalid):
    """A write without the revision that it is based on."""

    code = "base_missing"
    status = 428


@router.get("/documents", response=responses.Listed[responses.RevisionAnswer], auth=READ)
def list_documents(request: HttpRequest, workspace: SharedWorkspace = "") -> Any:
    """List the memory documents. MEMORY.md is part of every prompt."""
    return {"items": operations.list_documents(caller_of(request), workspace=workspace), "next": None}


@router.get("/documents/{name}", response=responses.DocumentAnswer, auth=READ)
def read_document(
    request: HttpRequest,
    response: HttpResponse,
    name: Name,
    revision: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
    workspace: SharedWorkspace = "",
) -> Any:
    """Read a document, or one of its revisions. The ETag is the revision, for If-Match."""
    found = operations.read_document(
        caller_of(request), name, revision=revision, workspace=workspace, now=timezone.now()
    )
    response["ETag"] = f'"{found["revision"]}"'
    return found


@router.get("/documents/{name}/revisions", response=responses.Listed[responses.RevisionAnswer], auth=READ)
def list_revisions(request: HttpRequest, name: Name, cursor: Cursor = "", limit: Limit = 50) -> Any:
    """List who changed a document, when and why, latest first."""
    items, next_cursor = operations.list_revisions(caller_of(request), name, cursor=cursor, limit=limit)
    return {"items": items, "next": next_cursor}


@router.get("/facts/{pk}/why", response=responses.WhyAnswer, auth=READ)
def explain_fact(request: HttpRequest, pk: RowId) -> Any:
    """Explain a fact of a document: where it came from, how certain that is, and its revisions.

    Searches return the ids of facts: GET /search?kinds=memory.
    """
    return operations.explain_fact(caller_of(request), pk, now=timezone.now())


@router.put("/documents/{name}", response={200: responses.WriteAnswer, 202: responses.WriteAnswer}, auth=EDIT)
def write_document(request: HttpRequest, name: Name, body: requests.DocumentWrite, if_match: IfMatch = None) -> Any:
    """Write a document, based on a revision. 202: the change is held for review.

    If-Match is required (otherwise 428). 412: the document has changed since; read it again.
    """
    tag = _TAG.fullmatch(if_match.strip()) if if_match else None
    if tag is None:
        raise BaseMissing('Send the revision that this is based on: If-Match: "12", or "0" for a new document.')
    written = operations.write_document(
        caller_of(request), name, body.content, base=int(tag[1]), reason=body.reason, now=timezone.now()
    )
    return Status(202 if written["status"] == "held" else 200, written)


@router.post("/documents/{name}/proposals", response={202: responses.ProposalAnswer}, auth=APPEND)
def propose_document(request: HttpRequest, name: Name, body: requests.DocumentProposal) -> Any:
    """Propose a new text of a document. It waits in the review inbox for a person."""
    caller = caller_of(request)
    return Status(
        202,
        operations.propose_document(
            caller, name, body.content, base=body.base, reason=body.reason, now=timezone.now()
        ),
    )


@router.post(
    "/documents/{name}/facts",
    response={200: responses.WriteAnswer, 201: responses.WriteAnswer, 202: responses.WriteAnswer},
    auth=APPEND,
)
def add_fact(request: HttpRequest, name: Name, body: requests.NewFact) -> Any:
    """Append one fact to a document. 200: it is known already. 202: it is held for review."""
    written = operations.add_fact(caller_of(request), name, body.fact, now=timezone.now())
    return Status({"unchanged": 200, "written": 201, "held": 202}[written["status"]], written)


@router.get("/proposals", response=responses.Listed[responses.ProposalAnswer], auth=READ)
def list_proposals(request: HttpRequest, cursor: Cursor = "", limit: Limit = 50) -> Any:
    """List the proposals of this workspace's agents, latest first."""
    items, next_cursor = operations.list_proposals(caller_of(request), cursor=cursor, limit=limit)
    return {"items": items, "next": next_cursor}


@router.get("/proposals/{pk}", response=responses.ProposalAnswer, auth=READ)
def show_proposal(request: HttpRequest, pk: RowId) -> Any:
    """Show a proposal. Its status is pending, approved, rejected or superseded."""
    return operations.show_proposal(caller_of(request), pk)


@router.get("/history", response=responses.Listed[responses.HistoryAnswer], auth=READ)
def list_history(request: HttpRequest, text: Text = "", cursor: Cursor = "", limit: Limit = 50) -> Any:
    """List the history log, latest first. text: only entries that contain it, ignoring case."""
    items, next_cursor = operations.list_history(
        caller_of(request), text=text, cursor=cursor, limit=limit, now=timezone.now()
    )
    return {"items": items, "next": next_cursor}


@router.post("/history", response={201: responses.HistoryAnswer}, auth=APPEND)
def append_history(request: HttpRequest, body: requests.HistoryNote) -> Any:
    """Append an entry to the history log."""
    return Status(
        201, operations.append_history(caller_of(request), body.text, session_key=body.session, now=timezone.now())
    )
