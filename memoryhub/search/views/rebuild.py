from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from memoryhub.jobs.queue import request_job
from memoryhub.jobs.views import to_job
from memoryhub.lib.search.index_names import index_names
from memoryhub.models import Job
from memoryhub.permissions import by_person, require_hub_operator


@require_POST
def rebuild_search(request: HttpRequest) -> HttpResponse:
    require_hub_operator(request)
    table = request.POST.get("table", "")
    options = {"tables": [table]} if table in index_names() else {}
    job, is_new = request_job(Job.Kind.REBUILD, None, options, by=by_person(request))
    return to_job(request, job, is_new=is_new)
