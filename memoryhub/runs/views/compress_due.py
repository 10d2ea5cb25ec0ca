from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from memoryhub.jobs.queue import request_job
from memoryhub.jobs.views import to_job
from memoryhub.lib.http.htmx import render_page
from memoryhub.models import Job
from memoryhub.permissions import EDITOR, by_person, get_workspace
from memoryhub.runs.compress_all import due_sessions, estimate_compression
from memoryhub.runs.forms import CompressForm
from sessions_app.services.compressing.model_choice import model_for

SHOWN_SESSIONS = 50


def compress_due(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what compressing all due sessions would do; on POST, queue a job that does it."""
    workspace = get_workspace(request, slug, role=EDITOR)
    model = model_for(workspace)
    initial = {"method": "llm" if model else "heuristic", "keep": workspace.recent_window}
    form = CompressForm(request.POST if request.method == "POST" else None, initial=initial)
    form.fields["keep"].required = False
    form.fields["method"].disabled = model is None
    if request.method == "POST" and form.is_valid():
        method = "heuristic" if model is None else form.cleaned_data["method"]
        options = {"method": method, "hold": form.cleaned_data["hold"]}
        job, is_new = request_job(Job.Kind.COMPRESSION, workspace, options, by=by_person(request))
        return to_job(request, job, is_new=is_new)
    context = {
        "workspace": workspace,
        "form": form,
        "model": model,
        "estimate": estimate_compression(workspace, model),
        "sessions": due_sessions(workspace)[:SHOWN_SESSIONS],
    }
    return render_page(request, "runs/compress_due.html", context, status=422 if form.errors else 200)
