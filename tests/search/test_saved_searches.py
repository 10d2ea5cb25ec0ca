import pytest
from django.test import Client
from django.urls import reverse

from memoryhub.models import RecentSearch, SavedSearch
from sessions_app.models import Membership, Workspace
from tests.hub import client_of, member
from tests.searches import know

pytestmark = pytest.mark.django_db


def save(client: Client, workspace: Workspace | None, name: str, q: str = "heron", **values) -> str:
    url = reverse("save-search", args=[workspace.slug]) if workspace else reverse("hub-save-search")
    params = values.pop("params", "")
    return client.post(f"{url}?q={q}{params}", {"name": name} | values, follow=True).content.decode()


def saved(client: Client, workspace: Workspace) -> str:
    return client.get(reverse("saved-searches", args=[workspace.slug])).content.decode()


def note(client: Client, workspace: Workspace, q: str) -> None:
    assert client.post(reverse("note-search", args=[workspace.slug]), {"q": q}).status_code == 204


@pytest.fixture
def colleague(workspace) -> Client:
    """Another person with read access."""
    return client_of(member(workspace, "cora", Membership.Role.VIEWER))


def test_a_search_is_saved_and_opened_as_it_was(workspace, viewer_client):
    assert "Saved as “Birds”" in save(
        viewer_client, workspace, " Birds ", params="&kind=knowledge&match=all&sort=newest"
    )

    one = SavedSearch.objects.get()
    opened = viewer_client.get(reverse("open-search", args=[workspace.slug, one.pk]))
    assert opened["Location"] == "/w/atlas/search/?q=heron&kind=knowledge&match=all&sort=newest"


def test_a_search_without_a_name_is_not_saved(workspace, viewer_client):
    assert "Give the search a name." in save(viewer_client, workspace, "  ")
    assert not SavedSearch.objects.exists()


def test_new_results_are_counted_until_the_search_is_opened(workspace, viewer_client):
    know(workspace, "heron")
    save(viewer_client, workspace, "Birds")
    assert " new<" not in saved(viewer_client, workspace)

    know(workspace, "another heron")
    know(workspace, "egret")

    assert "1 new<" in saved(viewer_client, workspace)
    viewer_client.get(reverse("open-search", args=[workspace.slug, SavedSearch.objects.get().pk]))
    assert " new<" not in saved(viewer_client, workspace)


def test_new_results_are_counted_within_the_kind(workspace, viewer_client):
    save(viewer_client, workspace, "NewObservation", params="&kind=entry")

    know(workspace, "heron")

    assert " new<" not in saved(viewer_client, workspace)


def test_a_shared_search_is_marked_and_deleted_only_by_its_owner(workspace, viewer_client, colleague):
    save(viewer_client, workspace, "Mine alone")
    save(viewer_client, workspace, "For all", is_shared="on")
    shared = SavedSearch.objects.get(name="For all")

    html = saved(colleague, workspace)

    assert "shared by vera" in html
    assert "Mine alone" not in html
    delete = reverse("delete-search", args=[workspace.slug, shared.pk])
    assert delete not in html
    assert colleague.post(delete).status_code == 404
    assert colleague.get(reverse("open-search", args=[workspace.slug, shared.pk])).status_code == 302
    seen = shared.seen_at
    shared.refresh_from_db()
    assert shared.seen_at == seen


def test_the_owner_deletes_a_search(workspace, viewer_client):
    save(viewer_client, workspace, "Birds")
    url = reverse("delete-search", args=[workspace.slug, SavedSearch.objects.get().pk])

    assert viewer_client.get(url).status_code == 405
    assert "is deleted" in viewer_client.post(url, follow=True).content.decode()
    assert not SavedSearch.objects.exists()


def test_another_persons_search_is_not_found(workspace, viewer_client, colleague):
    save(viewer_client, workspace, "Birds")
    pk = SavedSearch.objects.get().pk

    assert colleague.get(reverse("open-search", args=[workspace.slug, pk])).status_code == 404
    assert colleague.post(reverse("delete-search", args=[workspace.slug, pk])).status_code == 404


def test_a_saved_search_belongs_to_one_workspace(workspace, viewer, viewer_client):
    second = Workspace.objects.create(slug="borea", name="Borea")
    Membership.objects.create(workspace=second, user=viewer, role=Membership.Role.VIEWER)
    save(viewer_client, second, "There", is_shared="on")
    pk = SavedSearch.objects.get().pk

    assert viewer_client.get(reverse("open-search", args=[workspace.slug, pk])).status_code == 404
    assert viewer_client.get(reverse("hub-open-search", args=[pk])).status_code == 404
    assert "There" not in saved(viewer_client, workspace)


def test_a_search_of_all_workspaces_is_private(workspace, viewer_client, colleague):
    save(viewer_client, None, "Everywhere", is_shared="on")
    one = SavedSearch.objects.get()

    assert not one.is_shared
    assert viewer_client.get(reverse("hub-open-search", args=[one.pk]))["Location"] == "/search/?q=heron"
    assert colleague.get(reverse("hub-open-search", args=[one.pk])).status_code == 404


def test_new_rows_of_other_workspaces_do_not_count(workspace, viewer_client):
    save(viewer_client, None, "Everywhere")
    know(Workspace.objects.create(slug="other", name="Other"), "heron")

    assert " new<" not in viewer_client.get(reverse("hub-saved-searches")).content.decode()
    know(workspace, "heron")
    assert "1 new<" in viewer_client.get(reverse("hub-saved-searches")).content.decode()


def test_the_home_page_loads_the_saved_searches(workspace, viewer_client):
    save(viewer_client, workspace, "Birds")
    url = reverse("saved-searches", args=[workspace.slug])

    assert f'hx-get="{url}"' in viewer_client.get(reverse("search", args=[workspace.slug])).content.decode()
    fragment = viewer_client.get(url, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in fragment
    assert "Birds" in fragment


def test_recent_searches_are_private_and_can_be_cleared(workspace, viewer_client, colleague):
    note(viewer_client, workspace, "heron")
    note(viewer_client, workspace, "  ")
    start = reverse("search", args=[workspace.slug])

    assert 'href="/w/atlas/search/?q=heron" dir="auto">heron<' in viewer_client.get(start).content.decode()
    assert ">heron<" not in colleague.get(start).content.decode()
    viewer_client.post(reverse("clear-recent", args=[workspace.slug]))
    assert not RecentSearch.objects.exists()


def test_a_long_recent_search_is_shortened(workspace, viewer_client):
    note(viewer_client, workspace, "a" * 300)

    html = viewer_client.get(reverse("search", args=[workspace.slug])).content.decode()

    assert f"{'a' * 99}…</a>" in html
    assert "a" * 300 in html


def test_viewing_results_saves_no_search(workspace, viewer_client):
    html = viewer_client.get(reverse("search", args=[workspace.slug]), {"q": "heron"}).content.decode()
    typed = viewer_client.get(reverse("search", args=[workspace.slug]), {"q": "heron", "part": "1"}).content.decode()

    assert not RecentSearch.objects.exists()
    assert 'hx-trigger="load" hx-swap="none"' in html
    assert 'hx-trigger="load delay:3s" hx-swap="none"' in typed


def test_hostile_names_and_queries_are_escaped(workspace, viewer_client):
    hostile = "<img src=x onerror=alert(1)>"
    save(viewer_client, workspace, hostile, q=hostile)
    note(viewer_client, workspace, hostile)

    for html in (saved(viewer_client, workspace), viewer_client.get("/w/atlas/search/").content.decode()):
        assert hostile not in html
        assert "&lt;img" in html
