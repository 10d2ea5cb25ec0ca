"""Stored text of any script has its own direction (``dir``)."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import User

from knowledge_app.models import Confirmation, Term, TermRelation
from knowledge_app.services.documents.proposals import propose_text
from knowledge_app.services.documents.revisions import open_document, revise_document
from knowledge_app.services.rows.cached_responses import keep
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge
from knowledge_app.services.rows.observations import NewObservation, store
from sessions_app.models import Session, Summary, Workspace
from sessions_app.services.audit import By
from tests.hub import NOW, PERSON, add, client_of, compress, open_at, talk
from tests.searches import log
from tests.whole_site.roles import PAGES
from tests.whole_site.test_authorisation import OF_SEGMENT, filled
from tests.whole_site.test_login_required import routes

pytestmark = pytest.mark.django_db
WORD = "שלום"
FREE = ("title", "script", "option", "textarea", "text")  # windows, controls and drawings have no markup inside
VOID = ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
NOT_PAGES = ("download", "export", "markdown", "context-json", "complete", "changes", "knowledge:offered")


class Stray(HTMLParser):
    """Finds the places of a page whose text holds the word though neither they nor what is round them say ``dir``."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, bool, str]] = []
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in VOID:
            return
        isolates = tag == "bdi" or values.get("dir") in ("auto", "ltr") or tag in FREE
        self.open.append((tag, isolates and tag not in ("html", "body"), f"{tag}.{values.get('class') or ''}"))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if WORD in data and not any(isolates for _, isolates, _ in self.open):
            self.found.append(" > ".join(name for *_, name in self.open[-3:]) + f": {data.strip()[:40]}")


def stray(html: str) -> list[str]:
    finder = Stray()
    finder.feed(html)
    return finder.found


@pytest.fixture
def spoken(workspace: Workspace) -> Workspace:
    """A workspace in which everything that agents and people write is in Hebrew."""
    by = By(PERSON, NOW)
    Workspace.objects.filter(pk=workspace.pk).update(name=WORD)
    session = open_at(workspace, key=f"cli:{WORD}")
    talk(session, 2)
    call = {"id": "a", "type": "function", "function": {"name": WORD, "arguments": f'{{"c": "{WORD}"}}'}}
    add(session, [{"role": "user", "content": WORD}, {"role": "assistant", "content": WORD, "tool_calls": [call]}])
    add(session, [{"role": "tool", "tool_call_id": "a", "name": WORD, "content": WORD}])
    compress(session, keep=3, minimum=1)
    Summary.objects.filter(session=session).update(content=WORD)
    Session.objects.filter(pk=session.pk).update(title=WORD, summary_text=WORD)
    document = open_document(workspace, "MEMORY.md")
    first = revise_document(document, f"# {WORD}\n\n- {WORD} a\n- {WORD}\n", base=None, reason=WORD, by=by)
    revise_document(document, f"# {WORD}\n\n- {WORD}\n- {WORD} b\n", base=first, reason=WORD, by=by)
    propose_text(document, f"# {WORD}\n\n- {WORD} c\n", base_number=None, reason=WORD, by=by)
    log(workspace, WORD)
    add_knowledge(workspace, WORD, category="user_preference", source=WORD, tags=[WORD], by=by)
    for _ in range(2):
        store(workspace, [NewObservation("finding", f"{WORD} {WORD} {WORD}", source=WORD)], by=by)
    write_value(workspace, WORD, WORD, by=by)
    keep(workspace, WORD, "small", WORD, now=NOW)
    near = [Term.objects.create(workspace=workspace, text=f"{WORD}{name}", fingerprint="toy/2") for name in "ab"]
    TermRelation.objects.create(term=near[0], related=near[1], cosine=0.8)
    return workspace


def pages(workspace: Workspace) -> list[str]:
    """The addresses of the workspace's pages for which it has rows."""
    found = []
    for name, pattern in routes():
        is_page = PAGES.get(name, "-")[0] not in ("-", "nobody", "owner") and not any(
            word in name for word in NOT_PAGES
        )
        if not is_page or ("slug" not in pattern.pattern.converters and ":" not in name):
            continue
        segment = str(pattern.pattern).split("<int:pk>")[0].strip("/").split("/")[-1]
        if "pk" in pattern.pattern.converters and not OF_SEGMENT[segment].objects.exists():
            continue
        found.append(filled(name, pattern, workspace))
    return found


@pytest.mark.slow
def test_stored_text_has_its_own_direction(spoken):
    client = client_of(User.objects.create_superuser("olga"))

    asked = [*pages(spoken), f"/w/{spoken.slug}/search/?q={WORD}", f"/w/{spoken.slug}/recall/?q={WORD}", "/"]

    found = {url: stray(client.get(url).content.decode()) for url in asked}

    assert Confirmation.objects.exists()
    assert {url: places for url, places in found.items() if places} == {}


def test_the_check_finds_text_without_a_direction():
    assert stray(f"<main><p>{WORD}</p></main>") == [f"main. > p.: {WORD}"]
    assert stray(f'<p dir="auto">{WORD}</p><p><bdi>{WORD}</bdi><br></p>') == []
