"""The state of the agents' files that contained what was erased. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from django.http import HttpRequest

from knowledge_app.models import Forgotten
from memoryhub.backups.kept_databases import kept_databases
from memoryhub.models import Job
from memoryhub.permissions import EDITOR, OPERATOR, has_role
from memoryhub.sync.status import FileStatus, Standing, read_only_reasons, written_files
from memoryhub.sync.sync_requests import is_requested
from sessions_app.models import Session, SourceFile, Workspace

State = Literal["delivered", "behind", "held", "gone", "refused", "unchanged", "changed"]
STATES: dict[Standing, State] = {
    "in_step": "delivered",
    "ahead": "behind",
    "held": "held",
    "missing": "gone",
    "refused": "refused",
}


@dataclass(frozen=True)
class ErasedFile:
    """A file and its state: delivered, behind, held or refused if the hub may write it.

    Of others, unchanged or changed since the erasure. ``note``: why the hub doesn't write it, or can't. ``session``:
    the conversation of which it is the file.
    """

    path: str
    state: State
    note: str = ""
    status: FileStatus | None = None
    session: Session | None = None


@dataclass(frozen=True)
class ErasedPlace:
    """A folder with files that contained what was erased."""

    workspace: Workspace
    folder: str
    files: list[ErasedFile]
    is_additional: bool
    is_sending: bool
    may_send: bool

    @property
    def written(self) -> list[ErasedFile]:
        """The files that the hub may write."""
        return [file for file in self.files if file.status]

    @property
    def read_only(self) -> list[ErasedFile]:
        return [file for file in self.files if not file.status]

    @property
    def behind_count(self) -> int:
        return sum(file.state == "behind" for file in self.files)


def erasure_files(request: HttpRequest, job: Job) -> dict[str, Any]:
    """Return the context of ``sync/erased_files.html`` for the page of an erasure's job."""
    receipts = Forgotten.objects.filter(pk=job.options.get("receipt", 0), workspace=job.workspace)
    receipt = receipts.select_related("workspace").first()
    return {} if job.is_live or receipt is None else files_context(request, receipt)


def files_context(request: HttpRequest, receipt: Forgotten) -> dict[str, Any]:
    places = erased_places(request, receipt)
    known = sum(len(place.files) for place in places)
    return {
        "receipt": receipt,
        "places": places,
        "is_sending": any(place.is_sending for place in places),
        "gone_count": _gone_count(receipt) if known < len(receipt.files) else 0,
        "kept_databases": kept_databases(),
    }


def erased_places(request: HttpRequest, receipt: Forgotten) -> list[ErasedPlace]:
    """Return the folders with files that contained it, as far as the hub still knows them."""
    files = SourceFile.objects.filter(pk__in=map(int, receipt.files)).select_related("workspace", "folder", "session")
    by_place: dict[tuple[int, int], list[SourceFile]] = {}
    for file in files.order_by("workspace__name", "folder", "path"):
        if file.folder_id or file.workspace.path:
            by_place.setdefault((file.workspace_id, file.folder_id or 0), []).append(file)
    return [_place(request, receipt, found) for found in by_place.values()]


def _place(request: HttpRequest, receipt: Forgotten, files: list[SourceFile]) -> ErasedPlace:
    workspace, folder = files[0].workspace, files[0].folder
    written = {} if folder else {file.path: file for file in written_files(workspace) if file.document}
    reasons = {} if folder else read_only_reasons(workspace)
    states = [_file(file, receipt, written.get(file.path), reasons.get(file.path, "")) for file in files]
    is_behind = any(file.state == "behind" for file in states)
    return ErasedPlace(
        workspace,
        folder.path if folder else workspace.path,
        states,
        is_additional=folder is not None,
        is_sending=is_behind and (workspace.is_two_way or is_requested(workspace)),
        may_send=has_role(request.user, workspace, EDITOR if workspace.write_back else OPERATOR),
    )


def _file(file: SourceFile, receipt: Forgotten, status: FileStatus | None, why: str) -> ErasedFile:
    if status is not None:
        return ErasedFile(file.path, STATES[status.standing], status.note, status)
    if file.status == SourceFile.Status.MISSING:
        return ErasedFile(file.path, "gone", session=file.session)
    is_same = file.content_hash == receipt.files[str(file.pk)]
    return ErasedFile(file.path, "unchanged" if is_same else "changed", why, session=file.session)


def _gone_count(receipt: Forgotten) -> int:
    """Return how many files the hub no longer knows: those of erased sessions."""
    known: Iterable[int] = SourceFile.objects.filter(pk__in=map(int, receipt.files)).values_list("pk", flat=True)
    return len(receipt.files) - len(set(known))
