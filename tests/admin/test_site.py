"""The administration: for hub operators only, and within the content security policy."""

import re
from importlib import import_module

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from knowledge_app.models import EditedRow, Forgotten, KeyValue
from memoryhub.account_models import Passkey, RecoveryCode, SecondFactor
from memoryhub.models import SetupToken
from sessions_app.models import AuditRecord, Membership, Run, Webhook, Workspace
from tests.hub import NOW, client_of
from tests.markup import live_markup
from tests.rows import make

pytestmark = pytest.mark.django_db
import_module("memoryhub.urls")  # registers the tables
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
READ_ONLY = [model for model in MODELS if model not in (Membership, Workspace)]


def test_it_can_be_turned_off(admin_off, admin_client):
    assert admin_client.get("/admin/").status_code == 404
    for page in ("/", "/settings/", "/palette/?q=admin"):
        assert 'href="/admin/' not in admin_client.get(page).content.decode()


@pytest.mark.parametrize("page", ["/admin/", "/admin/login/", "/admin/auth/user/", "/admin/password_change/"])
def test_only_hub_operators_may_use_it(page, viewer_client, client):
    staff = client_of(User.objects.create_user("staff", is_staff=True))

    assert [visitor.get(page).status_code for visitor in (viewer_client, staff)] == [403, 403]
    assert client.get(page, follow=True).redirect_chain[-1][0].startswith("/login/?next=/admin/")


def test_it_has_no_sign_in_of_its_own(client, admin_client):
    data = {"username": "admin", "password": "password", "next": "/admin/"}

    assert client.post("/admin/login/", data).url.startswith("/login/")
    assert admin_client.get("/admin/password_change/").url == reverse("password")
    assert admin_client.post("/admin/logout/").url == reverse("login")
    assert admin_client.get("/admin/").status_code == 302


def test_it_is_linked_for_operators_only(admin_client, viewer_client):
    for page in ("/", "/settings/", "/palette/?q=admin"):
        assert 'href="/admin/"' in admin_client.get(page).content.decode()
    assert "/admin/" not in viewer_client.get("/").content.decode()


def test_the_five_tables_that_people_edit_come_first_and_internals_are_folded(admin_client):
    page = admin_client.get("/admin/").content.decode()
    shown, _, folded = page.partition("<details")

    assert "MemoryHub administration" in page
    assert re.findall(r'<tr class="model-(\w+)">', shown) == [
        "workspace", "session", "knowledgeentry", "observation", "keyvalue",
    ]  # fmt: skip
    assert len(re.findall(r'<tr class="model-', folded)) == len(MODELS) - 5


def address(model, page="changelist", **values):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", **values)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_every_list_row_and_search_opens_with_constant_queries_and_no_script(admin_client, model):
    for _ in range(3):
        row = make(model)
    change = admin_client.get(address(model, "change", args=[quote(row.pk)]))  # the first page notes who came

    with CaptureQueriesContext(connection) as for_few:
        few = admin_client.get(address(model))
    for _ in range(3):
        make(model)
    with CaptureQueriesContext(connection) as for_more:
        more = admin_client.get(address(model))
    found = admin_client.get(address(model), {"q": "it's \"half"})

    assert [page.status_code for page in (change, few, more, found)] == [200] * 4
    assert len(few.context["cl"].result_list) >= 3
    assert len(more.context["cl"].result_list) >= 6
    assert len(for_few) == len(for_more)
    assert [live_markup(page.content.decode()) for page in (change, few, found)] == [[]] * 3


def test_every_table_is_there():
    ours = {
        model
        for app in ("memoryhub", "sessions_app", "knowledge_app")
        for model in apps.get_app_config(app).get_models()
    }

    assert ours - set(MODELS) == set()


@pytest.mark.slow
@pytest.mark.parametrize("model", READ_ONLY, ids=lambda model: model._meta.label)
def test_rows_that_services_write_are_read_only(admin_client, model):
    row = make(model)
    url = address(model, "change", args=[quote(row.pk)])

    assert admin_client.get(address(model, "add")).status_code == 403
    assert admin_client.post(url, {"content": "x"}).status_code == 403
    assert admin_client.post(address(model, "delete", args=[quote(row.pk)]), {"post": "yes"}).status_code == 403
    assert model._default_manager.filter(pk=row.pk).exists()


@pytest.mark.slow
@pytest.mark.postgres
def test_hidden_values_are_on_no_page(admin_client, workspace):
    key_value = KeyValue.objects.create(workspace=workspace, key="token", value="s3cret-v", is_secret=True)
    key_value.corrected = {"value": "s3cret-c"}
    key_value.save()
    run = make(Run)
    Run.objects.filter(pk=run.pk).update(options={"table": "key_values", "values": {"value": "s3cret-r"}})
    rows = [
        key_value,
        key_value.history.first(),
        Run.objects.get(pk=run.pk),
        EditedRow.objects.create(run=run, table="key_values", object_id=1, before={"value": "s3cret-b"}, after=None),
        Webhook.objects.create(workspace=workspace, url="https://hooks.example", salt="s3cret-s", created_by="olga"),
        SecondFactor.objects.create(user=User.objects.create(username="nina"), secret="s3cret-f"),
        RecoveryCode.objects.create(user=User.objects.create(username="nils"), code_hash="s3cret-c"),
        Passkey.objects.create(user=User.objects.create(username="nora"), name="a", credential_id="s3cret-i"),
        SetupToken.objects.create(token_hash="s3cret-t", expires_at=NOW),
        Forgotten.objects.create(workspace=workspace, kind="phrase", digests=["s3cret-d"], forgotten_by="olga"),
    ]

    for row in rows:
        for url in (address(type(row)), address(type(row), "change", args=[row.pk])):
            response = admin_client.get(url)
            assert response.status_code == 200
            assert "s3cret" not in response.content.decode(), url


def test_search_ignores_secret_values(admin_client, workspace):
    KeyValue.objects.create(workspace=workspace, key="token", value="harbour", is_secret=True)
    KeyValue.objects.create(workspace=workspace, key="port", value="harbour 7")

    found = admin_client.get(address(KeyValue), {"q": "harbour"}).context["cl"].result_list

    assert [row.key for row in found] == ["port"]


@pytest.mark.parametrize(
    "question", ["value__startswith=h", "corrected__contains=h", "workspace__key_values__value=h"]
)
def test_no_filter_in_the_url_reveals_a_secret(admin_client, workspace, question):
    KeyValue.objects.create(workspace=workspace, key="token", value="harbour", is_secret=True)

    assert admin_client.get(f"{address(KeyValue)}?{question}").status_code == 400


def test_a_person_gets_a_role_in_a_workspace(admin_client, workspace):
    vera = User.objects.create_user("vera")
    url = reverse("admin:sessions_app_workspace_change", args=[workspace.pk])
    form = admin_client.get(url).context["adminform"].form
    values = {name: form.initial.get(name) for name in form.fields}
    values = {name: value for name, value in values.items() if value is not None and value is not False}
    inline = {"memberships-TOTAL_FORMS": 1, "memberships-INITIAL_FORMS": 0}
    inline |= {"memberships-0-user": vera.pk, "memberships-0-role": "editor", "memberships-0-workspace": workspace.pk}

    response = admin_client.post(url, values | inline)

    assert response.status_code == 302
    assert Membership.objects.get().role == "editor"
    assert Workspace.objects.get().slug == "atlas"
    [record] = AuditRecord.objects.filter(action="person.role_changed")
    assert (record.text, record.workspace, record.actor_name) == ("vera is now editor", workspace, "admin")


def test_changed_and_deleted_rows_are_audited(admin_client, workspace, viewer):
    url = reverse("admin:sessions_app_workspace_change", args=[workspace.pk])
    form = admin_client.get(url).context["adminform"].form
    values = {name: form.initial.get(name) for name in form.fields}
    values = {name: value for name, value in values.items() if value is not None and value is not False}
    values |= {"max_tokens": 9000, "memberships-TOTAL_FORMS": 0, "memberships-INITIAL_FORMS": 0}
    membership = Membership.objects.get()

    admin_client.post(url, values)
    admin_client.post(address(Membership, "delete", args=[membership.pk]), {"post": "yes"})

    changed = AuditRecord.objects.get(action="workspace.configured")
    removed = AuditRecord.objects.get(action="person.removed")
    assert changed.detail["changed"]["max_tokens"] == [50_000, 9000]
    assert removed.detail == {"role": "", "was": "viewer"}


def test_stored_markup_is_escaped(admin_client, workspace):
    Workspace.objects.update(name="<script>window.__xss=1</script>")

    html = admin_client.get(reverse("admin:sessions_app_workspace_changelist")).content.decode()

    assert live_markup(html) == []
