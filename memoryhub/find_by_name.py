"""Find rows by the names that commands use, and the sessions of runs."""

from __future__ import annotations

from django.utils.translation import gettext

from knowledge_app.models import MemoryDocument
from memoryhub.lib.content_check.stand_ins import pk_in, served_name
from memoryhub.lib.database.any_case import any_case
from memoryhub.lib.errors import NotFound
from sessions_app.models import Run, Session, Workspace
from sessions_app.services.entries import session_by_key

MAX_NAMES = 50  # listed in an error


def find_workspace(name: str) -> Workspace:
    """Return a workspace by its slug, or by its name if that is unique. Raises NotFound."""
    found = list(Workspace.objects.filter(slug=name)[:1]) or list(Workspace.objects.filter(name=name)[:2])
    if len(found) == 1:
        return found[0]
    known = ", ".join(Workspace.objects.order_by("slug").values_list("slug", flat=True)[:20]) or "none"
    raise NotFound(f"There is no workspace {name!r}. Known: {known}.")


def find_session(workspace: Workspace, key: str) -> Session:
    """Return a session by its key, or the stand-in of that. Raises NotFound."""
    session = session_by_key(workspace, key)
    if session is None and (pk := pk_in(key, "session")):
        session = Session.objects.select_related("workspace").filter(workspace=workspace, pk=pk).first()
    if session is None:
        raise NotFound(f"{workspace.slug} has no session {key!r}.")
    return session


def find_document(workspace: Workspace, name: str) -> MemoryDocument:
    """Return a memory document by its name, in any case if that is unique, or by the stand-in of its name.

    Raises NotFound, which lists the names.
    """
    documents = MemoryDocument.objects.select_related("head").filter(workspace=workspace, head__isnull=False)
    found = list(documents.filter(name=name)[:1]) or list(documents.filter(any_case("name__iexact", name))[:2])
    found = found or list(documents.filter(pk=pk_in(name, "document") or 0))
    if len(found) == 1:
        return found[0]
    rows = documents.order_by("name").values_list("name", "pk")[: MAX_NAMES + 1]
    names = [served_name(known, "document", pk) for known, pk in rows]
    more = ", and more" if len(names) > MAX_NAMES else ""
    known = f" Its documents are {', '.join(names[:MAX_NAMES])}{more}." if names else ""
    raise NotFound(f"{workspace.slug} has no {name}.{known}")


def session_of(run: Run) -> Session:
    """Return the session of a run. Raises NotFound if it was deleted."""
    found = Session.objects.select_related("workspace").filter(pk=run.session_id or 0).first()
    if found is None:
        raise NotFound(gettext("The session was deleted."), code="session_gone")
    return found
