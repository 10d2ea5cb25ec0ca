"""The problems of an import as its report shows them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from memoryhub.lib.layouts.nanobot.layout import decoded_key
from sessions_app.models import ImportProblem, ImportReport, SourceFile
from sessions_app.services.sources import path_hash

SKIPPED = ("skipped", "left out", "left alone", "not read", "not imported", "not taken")
_NOT_JSON = re.compile(r"column (\d+): not JSON: (.+)", re.DOTALL)


@dataclass(frozen=True)
class ProblemRow:
    """A problem with its texts. ``title``: of its session, or its file. ``more``: others of its kind."""

    problem: ImportProblem
    title: str
    text: str
    action: str
    source: str
    more: int

    @property
    def is_file(self) -> bool:
        return self.title == self.problem.file

    @property
    def fold(self) -> str:
        """The label of what shows the file's name and the excerpt, or "" if there is nothing more to show."""
        if self.source:
            return _("Show line") if self.problem.line else _("Show source")
        return "" if self.is_file else _("Show file name")


def problem_rows(
    report: ImportReport, problems: Sequence[ImportProblem], others: Mapping[int, int]
) -> list[ProblemRow]:
    """Return rows of the report. ``others``: the number of other problems of its kind, by primary key."""
    sessions = _session_names(report, {problem.file for problem in problems})
    return [
        ProblemRow(
            problem,
            title=sessions.get(problem.file) or _key_of_file(problem.file) or problem.file,
            text=_text(problem),
            action=_("Skipped") if problem.action in SKIPPED else capfirst(problem.action),
            source=bytes(problem.raw).decode("utf-8", errors="replace"),
            more=others.get(problem.pk, 0),
        )
        for problem in problems
    ]


def _session_names(report: ImportReport, files: Collection[str]) -> dict[str, str]:
    """Return the title or key of the session that each file belongs to, if it is known."""
    sources = SourceFile.objects.filter(workspace=report.workspace, path_hash__in=[path_hash(file) for file in files])
    return {row.path: str(row.session) for row in sources.exclude(session=None).select_related("session")}


def _key_of_file(file: str) -> str:
    """Return the session key that the name of a session file of nanobot 0.3 encodes, or ""."""
    name = PurePosixPath(file).name
    return (decoded_key(name.split(".")[0]) or "") if name.endswith((".json", ".jsonl")) else ""


def _text(problem: ImportProblem) -> str:
    what = capfirst(problem.what)
    if found := _NOT_JSON.fullmatch(problem.what):
        column, error = found.groups()
        what = _("Not valid JSON: %(error)s, column %(column)s") % {
            "error": error[:1].lower() + error[1:],
            "column": column,
        }
    if problem.line is None:
        return f"{what}."
    if problem.outcome == "rejected":
        unread = _("Line %(line)s couldn't be read.") % {"line": f"{problem.line:,}"}
        return f"{unread} {what}."
    place = _("Line %(line)s") % {"line": f"{problem.line:,}"}
    return f"{place}: {what}."
