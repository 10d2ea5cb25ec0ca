"""The hygiene page: open concerns, their score over time, and actions on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from knowledge_app.models import Concern, HygieneScore
from memoryhub.edit_responses import after_edit
from memoryhub.hygiene import resolution
from memoryhub.hygiene.clusters import one_per_cluster, sides_of_concerns, whole_clusters
from memoryhub.hygiene.findings import MAX_EACH, count_open, score_of
from memoryhub.hygiene.scanning import live_scan, request_scan
from memoryhub.lib.bulk_selection import Action, action_value, selected_keys
from memoryhub.lib.date_ranges import read_day
from memoryhub.lib.errors import MemoryHubError
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.http.pagination import keyset_page, parse_int
from memoryhub.lib.time_charts import LAST, ChartLinks, Series, TimeChart, time_chart
from memoryhub.permissions import EDITOR, OPERATOR, by_person, get_workspace, has_role
from sessions_app.models import Run, Workspace

SHOWN_SCORES = 365
PAGE_CONCERNS = 25


def desk(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug)
    kind, is_dismissed = _filters(request)
    counts = _counts(workspace)
    scores = list(
        HygieneScore.objects.filter(workspace=workspace).select_related("run").order_by("-id")[:SHOWN_SCORES]
    )
    concerns = one_per_cluster(_matching(workspace, request))
    page = keyset_page(concerns, order=("-id",), params=request.GET, size=PAGE_CONCERNS)
    may_forget = has_role(request.user, workspace, OPERATOR)
    latest = scores[0] if scores else None
    context = {
        "workspace": workspace,
        "tabs": [
            ("", gettext("All"), sum(counts.values())),
            *((k.value, k.label, counts[k.value]) for k in Concern.Kind),
        ],
        "kind": kind,
        "is_dismissed": is_dismissed,
        "latest": latest,
        "score": score_of(workspace, latest.row_count) if latest else None,
        "chart": _score_chart(scores),
        "chart_links": ChartLinks(
            csv=reverse("sessions:statistics-csv", args=[slug, "hygiene"]),
            range=reverse("sessions:statistics", args=[slug]),
        ),
        "limits": _limits(latest),
        "page": page,
        "count": concerns.count(),
        "actions": _actions(slug, kind, is_dismissed=is_dismissed),
        "rows": sides_of_concerns(workspace, page.rows, may_forget=may_forget),
        "may_edit": has_role(request.user, workspace, EDITOR),
        "scan": live_scan(workspace),
        "stopped": _stopped(workspace),
    }
    return render_page(request, "hygiene/hygiene.html", context, fragment="concerns")


def _score_chart(scores: Sequence[HygieneScore]) -> TimeChart:
    days = {timezone.localdate(score.at): score.score for score in reversed(scores)}
    return time_chart(gettext("Health over time"), [Series("score", gettext("Score"), days)], how=LAST)


def _counts(workspace: Workspace) -> dict[str, int]:
    """Return the number of open concerns of each kind; duplicates count as clusters."""
    clusters = one_per_cluster(Concern.objects.filter(workspace=workspace, status=Concern.Status.OPEN))
    duplicates = clusters.filter(kind=Concern.Kind.DUPLICATE).count()
    return count_open(workspace) | {Concern.Kind.DUPLICATE.value: duplicates}


def _filters(request: HttpRequest) -> tuple[str, bool]:
    kind = request.GET.get("kind", "")
    return kind if kind in Concern.Kind.values else "", request.GET.get("state") == "dismissed"


def _matching(workspace: Workspace, request: HttpRequest) -> QuerySet[Concern]:
    """Return the concerns that match the page's filters."""
    kind, is_dismissed = _filters(request)
    status = Concern.Status.DISMISSED if is_dismissed else Concern.Status.OPEN
    concerns = Concern.objects.filter(workspace=workspace, status=status)
    return concerns.filter(kind=kind) if kind else concerns


def _actions(slug: str, kind: str, *, is_dismissed: bool) -> list[Action]:
    """Return the bulk actions of a tab, each with its own URL."""

    def address(name: str) -> str:
        return f"{reverse(name, args=[slug])}?{urlencode({'state': 'dismissed'} if is_dismissed else {'kind': kind})}"

    if is_dismissed:
        return [Action("reopen", gettext_lazy("Reopen"), url=address("reopen-concerns"))]
    found = [Action("dismiss", gettext_lazy("Dismiss"), url=address("dismiss-concerns"))]
    if kind == "duplicate":
        found.append(Action("keep", gettext_lazy("Keep the first, withdraw the others"), url=address("keep-first")))
    if kind == "stale":
        label = gettext_lazy("Date")
        found.append(Action("verify", gettext_lazy("Still true"), url=address("verify-concerns")))
        found.append(
            Action("review", gettext_lazy("Review by"), asks="date", label=label, url=address("review-concerns"))
        )
    if kind and kind not in ("duplicate", "contradiction"):
        found.append(Action("withdraw", gettext_lazy("Withdraw"), url=address("withdraw-concerns")))
    return found


def _limits(latest: HygieneScore | None) -> list[str]:
    """Return what the last scan left out, as sentences."""
    proposal = latest.run.proposal if latest and latest.run else {}
    sentences = [
        gettext("%(kind)s: %(most)s shown, %(count)s more after the next scan.")
        % {"kind": Concern.Kind(kind).label, "most": f"{MAX_EACH:,}", "count": f"{count:,}"}
        for kind, count in proposal.get("left_out", {}).items()
    ]
    if proposal.get("is_cut"):
        sentences.append(gettext("Too many similar rows to compare: some duplicates may be missing."))
    return sentences


def _stopped(workspace: Workspace) -> Run | None:
    """Return the last scan if it failed or is parked."""
    last = Run.objects.filter(workspace=workspace, kind=Run.Kind.SCAN).order_by("-id").first()
    return last if last and last.status in (Run.Status.PARKED, Run.Status.FAILED) else None


def progress(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the progress of a scan; reload the page when it ends."""
    workspace = get_workspace(request, slug)
    run = live_scan(workspace)
    if run is None:
        return HttpResponseClientRefresh() if getattr(request, "htmx", False) else redirect("hygiene", slug)
    context = {"workspace": workspace, "scan": run}
    return render_page(request, "hygiene/progress.html", context)


@require_POST
def scan(request: HttpRequest, slug: str) -> HttpResponse:
    workspace = get_workspace(request, slug, role=EDITOR)
    request_scan(workspace, by=by_person(request))
    return redirect("hygiene", slug)


def _act(request: HttpRequest, slug: str, action: Callable[..., Run], **values: object) -> HttpResponse:
    """Apply an action to the selected concerns, or to the one whose button was used."""
    workspace = get_workspace(request, slug, role=EDITOR)
    only = parse_int(request.POST.get("only"))
    try:
        shown = one_per_cluster(_matching(workspace, request))
        chosen = selected_keys(request, shown) if only is None else [only]
        pks = whole_clusters(workspace, chosen) or chosen
        run = action(workspace, pks, by=by_person(request), **values)
    except MemoryHubError as error:
        messages.error(request, error.message)
    else:
        if run.is_live:
            return after_edit(request, run, slug, "")
        messages.success(request, f"{run.options['along']['words']}.", extra_tags=str(run.pk))
    kind, is_dismissed = _filters(request)
    filters = {"kind": kind, "state": "dismissed" if is_dismissed else ""}
    query = urlencode({name: value for name, value in filters.items() if value})
    return redirect(f"{reverse('hygiene', args=[slug])}{f'?{query}' if query else ''}")


@require_POST
def dismiss(request: HttpRequest, slug: str) -> HttpResponse:
    return _act(request, slug, resolution.dismiss)


@require_POST
def reopen(request: HttpRequest, slug: str) -> HttpResponse:
    return _act(request, slug, resolution.reopen)


@require_POST
def withdraw(request: HttpRequest, slug: str) -> HttpResponse:
    return _act(request, slug, resolution.withdraw)


@require_POST
def keep_first(request: HttpRequest, slug: str) -> HttpResponse:
    return _act(request, slug, resolution.keep, other=False)


@require_POST
def keep_other(request: HttpRequest, slug: str) -> HttpResponse:
    return _act(request, slug, resolution.keep, other=True)


@require_POST
def keep_one(request: HttpRequest, slug: str) -> HttpResponse:
    """Keep the row ``stays`` of a cluster of duplicates and withdraw the others."""
    table, _, pk = request.GET.get("stays", "").rpartition("-")
    return _act(request, slug, resolution.keep_in_cluster, stays=(table, parse_int(pk) or 0))


@require_POST
def verify(request: HttpRequest, slug: str) -> HttpResponse:
    return _act(request, slug, resolution.verify)


@require_POST
def review_by(request: HttpRequest, slug: str) -> HttpResponse:
    return _act(
        request,
        slug,
        resolution.review,
        day=read_day(request.POST.get("review_by", "") or action_value(request, "review")),
    )
