"""No page and no download that a viewer may open shows a secret."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from knowledge_app.models import KnowledgeEntry, Term, TermRelation
from knowledge_app.services.documents.proposals import propose_text
from knowledge_app.services.documents.revisions import open_document, revise_document
from knowledge_app.services.rows.cached_responses import keep
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.observations import NewObservation, store
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.permissions import EDITOR
from sessions_app.models import AuditRecord, Membership, Run, Session, Summary, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, compress, open_at, talk
from tests.searches import log
from tests.whole_site.roles import PAGES
from tests.whole_site.test_authorisation import OF_SEGMENT, filled
from tests.whole_site.test_login_required import routes

pytestmark = pytest.mark.django_db
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
LEAK = f"the deploy token is {SECRET}"


@pytest.fixture
def leaky(workspace: Workspace) -> Workspace:
    """A workspace in which everything that agents and people write has a secret."""
    by = By(PERSON, NOW)
    session = open_at(workspace)
    talk(session, 2)
    call = {"id": "a", "type": "function", "function": {"name": "shell", "arguments": f'{{"c": "{LEAK}"}}'}}
    add(session, [{"role": "user", "content": LEAK}, {"role": "assistant", "content": LEAK, "tool_calls": [call]}])
    add(session, [{"role": "tool", "tool_call_id": "a", "name": "shell", "content": LEAK}])
    compress(session, keep=3, minimum=1)
    Summary.objects.filter(session=session).update(content=LEAK)
    Session.objects.filter(pk=session.pk).update(
        title=LEAK, summary_text=LEAK, extra={"token": LEAK, "checkpoint": {"said": LEAK}}
    )
    document = open_document(workspace, "MEMORY.md")
    first = revise_document(document, f"# Team\n\n- {LEAK} a\n- tea\n", base=None, reason=LEAK, by=by)
    revise_document(document, f"# Team\n\n- {LEAK} b\n- tea\n", base=first, reason="by hand", by=by)
    propose_text(document, f"# Team\n\n- {LEAK} c\n", base_number=None, reason="by hand", by=by)
    log(workspace, LEAK)
    add_knowledge(workspace, LEAK, category="user_preference", source=LEAK, by=by)
    for _ in range(2):
        store(workspace, [NewObservation("finding", f"{LEAK} here", source=LEAK)], by=by)
    entry = add_knowledge(workspace, f"{LEAK} now", category="user_preference", by=by).entry
    edit_rows(workspace, "knowledge", "assign", [entry.pk], values={"content": f"{LEAK} then"}, by=by)
    write_value(workspace, "deploy", LEAK, by=by)
    keep(workspace, LEAK, "small", LEAK, now=NOW)
    near = [Term.objects.create(workspace=workspace, text=text, fingerprint="toy/2") for text in ("deploy", "token")]
    TermRelation.objects.create(term=near[0], related=near[1], cosine=0.8)
    return workspace


def pages(workspace: Workspace) -> list[str]:
    """Return the addresses of the workspace's pages and downloads for viewers."""
    found = []
    for name, pattern in routes():
        if PAGES[name][0] not in ("viewer", "stranger") or name == "open-search":
            continue
        segment = str(pattern.pattern).split("<int:pk>")[0].strip("/").split("/")[-1]
        if "pk" in pattern.pattern.converters and not OF_SEGMENT[segment].objects.exists():
            continue
        found.append(filled(name, pattern, workspace))
    return found


def past_pages(workspace: Workspace) -> list[str]:
    now = timezone.now()
    at, first = (f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in (now, NOW - timedelta(days=1)))
    parts = ("memory", "sessions", "history", "knowledge", "observations", "key-values")
    past, compare = (reverse(name, args=[workspace.slug]) for name in ("past", "compare-past"))
    return [
        *[f"{past}?at={at}&part={part}" for part in parts],
        *[f"{compare}?from={first}&to={at}&part={part}" for part in parts],
    ]


def more_pages(workspace: Workspace, session: Session) -> list[str]:
    own = f"/w/{workspace.slug}/sessions/{session.pk}"
    return [
        f"{own}/?epoch=0&from=0",
        f"{own}/arrivals/?epoch=0&from=0",
        f"{own}/context/?form=text",
        f"{own}/markdown/?originals=1",
        f"{own}/markdown/?summary={Summary.objects.latest('pk').pk}",
        *[f"{own}/export/?layout={layout}" for layout in ("nanobot", "grip", "agterm")],
        *[f"/w/{workspace.slug}/search/?q={query}" for query in ("deploy", "deploy+kind:session")],
        f"/w/{workspace.slug}/search/markdown/?q=deploy",
        *[f"/w/{workspace.slug}/search/complete/?q={field}:" for field in ("session", "source", "author")],
        *[f"/w/{workspace.slug}/runs/{run.pk}/" for run in Run.objects.all()],
        f"/w/{workspace.slug}/recall/?q=deploy",
        "/search/?q=deploy",
        "/palette/?q=deploy",
    ]


@pytest.mark.slow
def test_viewers_see_no_secret_anywhere(leaky: Workspace, viewer_client: Client):
    asked = [*pages(leaky), *past_pages(leaky), *more_pages(leaky, Session.objects.get())]
    found = {url: places(viewer_client, url) for url in dict.fromkeys(asked)}

    assert {url: leaks for url, leaks in found.items() if leaks} == {}


def test_exported_search_results_have_no_secret(leaky: Workspace, viewer_client: Client):
    url = f"/w/{leaky.slug}/search/export/?q=deploy"
    rows = [f"knowledge:{KnowledgeEntry.objects.latest('pk').pk}", f"session:{Session.objects.get().pk}"]

    for name in ("jsonl", "csv"):
        content = viewer_client.post(url, {"action": f"export:{name}", "row": rows}).content.decode()
        assert "the deploy token is" in content
        assert SECRET not in content


def test_editors_see_secrets_on_request_and_it_is_recorded(leaky: Workspace, viewer_client: Client):
    Membership.objects.filter(user__username="vera").update(role=EDITOR)
    session, slug = Session.objects.get(), leaky.slug
    entry = KnowledgeEntry.objects.latest("pk")
    Session.objects.update(title="")  # the form that changes it shows it
    reveal = reverse("sessions:reveal", args=[slug, session.pk])
    assert places(viewer_client, reverse("sessions:detail", args=[slug, session.pk])) == []

    ways = [
        lambda: viewer_client.post(reveal),
        lambda: viewer_client.get(reverse("session-markdown", args=[slug, session.pk])),
        lambda: viewer_client.get(reverse("context-markdown", args=[slug, session.pk])),
        lambda: viewer_client.get(reverse("knowledge:knowledge-markdown", args=[slug])),
        lambda: viewer_client.get(reverse("knowledge:download-observations", args=[slug])),
        lambda: viewer_client.get(reverse("knowledge:knowledge-entry", args=[slug, entry.pk])),
    ]
    for count, way in enumerate(ways, 1):
        assert SECRET in way().getvalue().decode()
        assert AuditRecord.objects.filter(action="secrets.revealed").count() == count


def test_only_editors_reveal_a_transcript(leaky: Workspace, viewer_client: Client):
    reveal = reverse("sessions:reveal", args=[leaky.slug, Session.objects.get().pk])

    assert viewer_client.post(reveal).status_code == 404
    assert not AuditRecord.objects.filter(action="secrets.revealed").exists()


def test_exported_sessions_stay_valid_json(leaky: Workspace, viewer_client: Client):
    url = reverse("export-session", args=[leaky.slug, Session.objects.get().pk])

    lines = b"".join(viewer_client.get(f"{url}?layout=nanobot").streaming_content).decode().splitlines()
    document = json.loads(b"".join(viewer_client.get(f"{url}?layout=agterm").streaming_content))

    assert len([json.loads(line) for line in lines]) > 5
    assert "the deploy token is •••" in str(document)


def places(client: Client, url: str) -> list[str]:
    """Return the text before each secret of a response."""
    response = client.get(url, follow=True)
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return [part[-70:].strip() for part in content.decode().split(SECRET)[:-1]]
