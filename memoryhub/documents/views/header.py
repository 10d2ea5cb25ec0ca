"""What all pages of a document have in common: its row of tabs, and a menu of the other documents."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse

from knowledge_app.models import MemoryDocument
from memoryhub.permissions import EDITOR, get_workspace, has_role


def find_document(request: HttpRequest, slug: str, pk: int, *, role: str = "viewer") -> MemoryDocument:
    workspace = get_workspace(request, slug, role=role)
    rows = MemoryDocument.objects.select_related("head", "workspace")
    found: MemoryDocument = get_object_or_404(rows, workspace=workspace, pk=pk)
    return found


def facts_url(slug: str) -> str:
    """Return the URL that the pages of facts begin with: reversing it for each of many facts takes long."""
    return reverse("documents:fact", args=[slug, 0]).removesuffix("0/")


def document_context(request: HttpRequest, document: MemoryDocument, tab: str) -> dict[str, Any]:
    """Return the context of ``documents/page.html``. ``tab``: read, facts, edit, history, origins or compare."""
    others = MemoryDocument.objects.filter(workspace=document.workspace_id, head__isnull=False)
    return {
        "workspace": document.workspace,
        "document": document,
        "siblings": list(others.only("name").order_by("name")),
        "may_edit": has_role(request.user, document.workspace, EDITOR),
        "tab": tab,
    }
