from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver, reverse
from django.urls.resolvers import URLPattern, URLResolver
from django.utils import timezone

from memoryhub.accounts.setup import issue_setup_token
from memoryhub.lib.errors import Gone
from memoryhub.models import FailedAttempts
from sessions_app.models import AuditRecord, ImportReport, Membership, Workspace
from tests.hub import run_jobs

pytestmark = pytest.mark.django_db
PASSWORD = "a calm sea 42"
BACKUP = "memoryhub-20260401T120000Z.tar.gz"


def routes(patterns=None, prefix=""):
    """Yield the name and pattern of every page. tests/admin covers the administration, ``api.app.schema`` the API."""
    for pattern in patterns or get_resolver().url_patterns:
        if isinstance(pattern, URLResolver) and pattern.namespace not in ("api", "admin"):
            yield from routes(pattern.url_patterns, f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix)
        elif isinstance(pattern, URLPattern) and pattern.name:
            yield f"{prefix}{pattern.name}", pattern


def address(name: str, pattern: URLPattern, slug: str) -> str:
    """Fill in a route. One below a workspace has its slug from the part that includes it."""
    values = {"pk": 1, "number": 1, "token": "x", "slug": slug, "rest": "nothing", "name": BACKUP}
    values |= {"part": "knowledge", "chart": "tokens", "shape": "plain", "section": "model"}
    own = {key: values[key] for key in pattern.pattern.converters}
    return reverse(name, kwargs=own | ({"slug": slug} if ":" in name else {}))


def test_an_address_that_only_receives_forms_is_explained(viewer_client, workspace):
    response = viewer_client.get("/inbox/decide/?item=change-1")

    assert (response.status_code, response["Allow"]) == (405, "POST")
    assert "only forms are sent to it" in response.content.decode()
    assert 'href="/"' in response.content.decode()


def test_every_answer_carries_the_headers(client):
    response = client.get(reverse("login"))

    assert "default-src 'none'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert "no-store" in response["Cache-Control"]
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"


def test_pages_are_compressed_and_files_are_not(admin_client, workspace):
    packed = {"Accept-Encoding": "gzip"}

    assert admin_client.get(reverse("design"), headers=packed)["Content-Encoding"] == "gzip"
    exported = admin_client.post(reverse("export-activity", args=["atlas"]), headers=packed)
    assert "Content-Encoding" not in exported
    assert exported["Content-Security-Policy"] == "sandbox"


def test_an_unknown_host_is_refused(client):
    assert client.get("/login/", headers={"host": "evil.example"}).status_code == 400


def test_posts_need_a_csrf_token(admin_user):
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)

    assert client.post(reverse("import"), {"path": "/"}).status_code == 403


def test_the_setup_link_makes_the_first_operator_once(client):
    url = reverse("setup", args=[issue_setup_token(timezone.now())])
    answers = {"username": "olga", "password1": PASSWORD, "password2": PASSWORD}

    assert client.get(url).status_code == 200
    assert client.post(url, answers).status_code == 302
    assert User.objects.get().is_superuser
    assert AuditRecord.objects.get().action == "account.created"
    assert Client().post(url, answers | {"username": "mallory"}).status_code == 302
    assert User.objects.count() == 1


def test_an_expired_setup_link_creates_no_account(client):
    url = reverse("setup", args=[issue_setup_token(timezone.now() - timedelta(minutes=31))])

    assert client.post(url, {"username": "a", "password1": PASSWORD, "password2": PASSWORD}).status_code == 410
    assert not User.objects.exists()


def test_the_login_page_of_a_new_hub_mentions_the_setup_link(client, django_user_model):
    before = client.get(reverse("login")).content.decode()
    django_user_model.objects.create_superuser("olga", password=PASSWORD)

    assert "No account yet" in before
    assert "No account yet" not in client.get(reverse("login")).content.decode()


def test_a_newer_link_invalidates_the_older_one(client):
    old = issue_setup_token(timezone.now())
    issue_setup_token(timezone.now())

    assert client.get(reverse("setup", args=[old])).status_code == 410


def test_a_weak_password_is_refused(client):
    url = reverse("setup", args=[issue_setup_token(timezone.now())])

    assert client.post(url, {"username": "a", "password1": "1234", "password2": "1234"}).status_code == 422


def test_health_reveals_nothing_of_the_contents(client):
    assert client.get(reverse("health")).json() == {"status": "ok"}


def test_the_home_page_lists_only_ones_own_workspaces(workspace, viewer_client):
    Workspace.objects.create(slug="other", name="Secret project")

    html = viewer_client.get("/").content.decode()

    assert "Atlas" in html
    assert "Secret project" not in html


def test_the_first_page_offers_an_import_and_the_demo(admin_client):
    html = admin_client.get("/").content.decode()

    assert "Import a folder" in html
    assert "Open the demo" in html


def test_viewers_may_not_import(workspace, viewer_client, settings, tmp_path):
    Workspace.objects.update(path=str(tmp_path))

    assert viewer_client.get(reverse("import")).status_code == 403
    assert viewer_client.post(reverse("import-again", args=[workspace.slug])).status_code == 404
    assert viewer_client.post(reverse("demo")).status_code == 403
    assert not ImportReport.objects.exists()


@pytest.mark.parametrize(
    "path", ["import", "backups", "people", "people/999", "activity", "person-data", "settings", "new", "admin"]
)
def test_pages_for_hub_operators_say_so_and_nothing_else(path, viewer_client, client):
    Workspace.objects.create(slug="other", name="Secret project")

    page = viewer_client.get(f"/{path}/")

    assert page.status_code == 403
    html = page.content.decode()
    assert "You need to be a hub operator" in html
    assert "Secret project" not in html
    assert "/login/?next=" in client.get(f"/{path}/")["Location"]


@pytest.mark.parametrize("name", ["new-session", "workspace-settings", "forget", "documents:edit-fact"])
def test_members_whose_role_is_too_low_are_told_so(name, workspace, viewer_client, stranger_client):
    url = reverse(name, args=[workspace.slug, *([1] if name.endswith("fact") else [])])
    pages = [client.get(url) for client in (viewer_client, stranger_client)]

    assert [page.status_code for page in pages] == [404, 404]
    member, stranger = (page.content.decode() for page in pages)
    assert "Your role does not allow this" in member
    assert reverse("workspace", args=[workspace.slug]) in member
    assert "Page not found" in stranger
    assert workspace.name not in stranger


def test_roles_rank(workspace, viewer, viewer_client, tmp_path):
    (tmp_path / "kv.json").write_text("{}")
    Workspace.objects.update(path=str(tmp_path))
    Membership.objects.update(role=Membership.Role.OPERATOR)

    assert viewer_client.post(reverse("import-again", args=[workspace.slug])).status_code == 302


@pytest.mark.slow
def test_the_demo_opens_from_the_first_page(admin_client, settings, tmp_path, monkeypatch):
    settings.MEMORYHUB_HOME = tmp_path
    monkeypatch.setattr("memoryhub.demo.building.STAGES", (0,))  # tests/demo builds the whole of it

    response = admin_client.post(reverse("demo"), follow=True)
    run_jobs()

    assert "The demo is being created" in response.content.decode()
    assert set(Workspace.objects.values_list("name", flat=True)) == {"Atlas", "Pilot", "Forge", "Desk"}


@pytest.mark.parametrize("is_htmx", [True, False])
def test_an_expected_error_becomes_a_message(is_htmx, admin_client, monkeypatch):
    def refuse(*_args, **_options):
        raise Gone("Not now.", code="setup_link_invalid")

    monkeypatch.setattr("memoryhub.dashboard.views.home.keyset_page", refuse)

    response = admin_client.get("/", headers={"HX-Request": "true"} if is_htmx else {})

    assert response.status_code == 422
    assert "Not now." in response.content.decode()
    assert response.headers.get("HX-Retarget", "") == ("#messages" if is_htmx else "")


def test_wrong_passwords_are_rate_limited_for_a_while(client):
    User.objects.create_user("vera", password=PASSWORD)
    wrong = [client.post("/login/", {"username": "vera", "password": "guess"}) for _ in range(10)]

    slowed = client.post("/login/", {"username": "vera", "password": PASSWORD})
    FailedAttempts.objects.update(expires_at=timezone.now())  # as after a minute
    forgiven = client.post("/login/", {"username": "vera", "password": PASSWORD})

    assert all("Too many" not in response.content.decode() for response in wrong)
    assert "Too many failed attempts" in slowed.content.decode()
    assert forgiven.status_code == 302


def test_an_unknown_name_gets_the_same_answer_as_a_known_one(client):
    User.objects.create_user("vera", password=PASSWORD)

    def heard(name: str) -> list[str]:
        response = client.post("/login/", {"username": name, "password": "guess"})
        return response.context["form"].non_field_errors()

    assert heard("vera") == heard("nobody")
