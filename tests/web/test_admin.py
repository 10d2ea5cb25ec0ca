"""The admin site is off by default; switched on, it is for operators only and breaks no policy."""

from __future__ import annotations

from importlib import import_module, reload

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import clear_url_caches, reverse

from sessions_app.models import Membership, Workspace
from tests.markup import live_markup

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_on(settings):
    settings.MEMORYHUB_ADMIN = True
    reload(import_module("memoryhub.urls"))
    clear_url_caches()
    yield
    settings.MEMORYHUB_ADMIN = False
    reload(import_module("memoryhub.urls"))
    clear_url_caches()


def test_it_is_off_unless_asked_for(admin_client):
    assert admin_client.get("/admin/").status_code == 404


def test_staff_without_all_rights_stays_out(admin_on):
    client = Client()
    client.force_login(User.objects.create_user("staff", is_staff=True))

    assert client.get("/admin/").status_code == 302


def test_every_list_and_form_opens(admin_on, admin_client, workspace):
    for model, options in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
        assert admin_client.get(reverse(name)).status_code == 200, name
        assert options.model is model


def test_a_person_gets_a_role_in_a_workspace(admin_on, admin_client, workspace):
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


def test_stored_markup_is_text_there_too(admin_on, admin_client, workspace):
    Workspace.objects.update(name="<script>window.__xss=1</script>")

    html = admin_client.get(reverse("admin:sessions_app_workspace_changelist")).content.decode()

    assert live_markup(html) == []
