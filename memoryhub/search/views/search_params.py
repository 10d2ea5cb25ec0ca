"""Parse search parameters from a query string, and write them as one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Exists
from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.translation import gettext

from memoryhub.lib.search.query import Query, parse
from memoryhub.permissions import get_workspace, has_role, is_hub_operator, visible_workspaces
from memoryhub.search import KINDS, Scope
from memoryhub.search.forms import SearchForm
from memoryhub.search.grip_scoring import DEFAULT_DECAY
from memoryhub.search.ranking import PATIENCE, RankOptions
from sessions_app.models import Membership, Workspace

MAX_CHARS = 2_000  # of a query; the parser reads 512 of them and says so
MAX_DECAY = 1_000.0
MATCHES = dict(SearchForm.MATCHES)
SORTS = dict(SearchForm.SORTS)
MODES = dict(SearchForm.MODES)
CATEGORIES = dict(SearchForm.CATEGORIES)


@dataclass(frozen=True)
class Place:
    """What a page searches: one workspace, or (None) all that the user can see."""

    workspace: Workspace | None
    scope: Scope
    may_edit: bool = False

    def url(self, name: str, *args: Any) -> str:
        """Return the URL of a search page, of the workspace or of the hub."""
        if self.workspace is None:
            return reverse(f"hub-{name}", args=args)
        return reverse(name, args=[self.workspace.slug, *args])


@dataclass(frozen=True)
class SearchParams:
    """Search parameters. ``is_part``: the last word may be half typed. ``graph``: expand words by the graph.

    ``own``: search agents' own sessions too. ``whole``: take longer rather than leave results out. ``as_typed``:
    correct no words.
    """

    q: str = ""
    kind: str = ""
    match: str = "any"
    sort: str = "best"
    mode: str = ""
    category: str = ""
    decay: float = DEFAULT_DECAY
    graph: bool = True
    own: bool = False
    is_part: bool = False
    whole: bool = False
    as_typed: bool = False

    @property
    def patience(self) -> int:
        """Return the factor for time limits."""
        return PATIENCE if self.whole and not self.is_part else 1

    @property
    def is_start(self) -> bool:
        """Tell whether the search is empty."""
        return not (self.q.strip() or self.kind)

    @property
    def decay_text(self) -> str:
        return f"{self.decay:g}"

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self.kind,) if self.kind else ()

    @property
    def rank_options(self) -> RankOptions:
        recency = self.sort if self.sort in ("floored", "grip") else "off"
        is_finished = not (self.as_typed or self.is_part)
        return RankOptions(recency, self.decay, self.graph, patience=self.patience, correct=is_finished)

    @property
    def params(self) -> dict[str, str]:
        """Return the query string parameters; defaults are left out."""
        named = {
            "q": self.q.strip() if not self.is_part else self.q,
            "kind": self.kind,
            "match": self.match if self.match != "any" else "",
            "sort": self.sort if self.sort != "best" else "",
            "mode": self.mode,
            "category": self.category if self.mode in ("grip-memory", "grip-knowledge") else "",
            "decay": self.decay_text if self.decay != DEFAULT_DECAY else "",
            "graph": "" if self.graph else "0",
            "own": "1" if self.own else "",
            "part": "1" if self.is_part else "",
            "whole": "1" if self.whole else "",
            "typed": "1" if self.as_typed else "",
        }
        return {name: value for name, value in named.items() if value}

    def query(self, now: datetime) -> Query:
        zone = timezone.get_current_timezone()
        return parse(self.q, now=now, match_all=self.match == "all", prefix=self.is_part, zone=zone)

    def address(self, url: str, **further: str) -> str:
        """Return a URL with these and more parameters."""
        params = self.params | further
        return f"{url}?{urlencode(params)}" if params else url

    def but(self, url: str, **changes: Any) -> str:
        """Return the URL of the first page of this search with changes."""
        return replace(self, is_part=False, **changes).address(url)


def search_place(request: HttpRequest, slug: str | None) -> Place:
    """Return what a page searches; 404 for a workspace that the user can't see."""
    own = "1" in (request.GET.get("own"), request.POST.get("own"))
    if slug is not None:
        workspace = get_workspace(request, slug)
        may_edit = has_role(request.user, workspace, Membership.Role.EDITOR)
        return Place(workspace, Scope((workspace.pk,), own_sessions=own), may_edit)
    visible = visible_workspaces(request)
    if is_hub_operator(request.user):
        return Place(None, Scope(None, own_sessions=own))
    keys = tuple(visible.order_by("pk").values_list("pk", flat=True))
    return Place(None, Scope(keys, own_sessions=own))


def parse_search_params(params: QueryDict, place: Place) -> SearchParams:
    """Parse a query string; unknown values become the defaults."""
    mode = _known(params, "mode", MODES, "") if place.workspace else ""
    return SearchParams(
        q=params.get("q", "").replace("\x00", " ")[:MAX_CHARS],
        kind=_known(params, "kind", KINDS, ""),
        match=_known(params, "match", MATCHES, "any"),
        sort=_known(params, "sort", SORTS, "best"),
        mode=mode,
        category=_known(params, "category", CATEGORIES, ""),
        decay=_rate(params.get("decay", "")),
        graph=params.get("graph") != "0",
        own=params.get("own") == "1",
        is_part=params.get("part") == "1",
        whole=params.get("whole") == "1",
        as_typed=params.get("typed") == "1",
    )


def _known(params: QueryDict, name: str, values: Any, usual: str) -> str:
    value = params.get(name, "")
    return value if value in values else usual


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        return DEFAULT_DECAY
    return rate if math.isfinite(rate) and 0 <= rate <= MAX_DECAY else DEFAULT_DECAY


def used_kinds(workspace: Workspace) -> set[str]:
    """Return the names of the kinds that a workspace has rows of.

    They are compared with a value: for a column, PostgreSQL would read all rows of a hub for an empty workspace.
    """
    rows = {kind.name: Exists(kind.rows(None).filter(**{kind.workspace: workspace.pk})) for kind in KINDS.values()}
    found = Workspace.objects.filter(pk=workspace.pk).order_by().values_list(*rows.values()).get()
    return {name for name, is_used in zip(rows, found, strict=True) if is_used}


def search_form(asked: SearchParams, place: Place) -> SearchForm:
    used = used_kinds(place.workspace) if place.workspace else set(KINDS)
    shown = [kind for kind in KINDS.values() if kind.name in used or kind.name == asked.kind]
    kinds = [("", gettext("All")), *((kind.name, capfirst(str(kind.many))) for kind in shown)]
    values = {"kind": asked.kind, "match": asked.match, "sort": asked.sort, "mode": asked.mode}
    values |= {"category": asked.category, "decay": asked.decay_text}
    form = SearchForm(initial={**values, "own": asked.own}, kinds=kinds)
    if place.workspace is None:
        del form.fields["mode"], form.fields["category"]
    return form
