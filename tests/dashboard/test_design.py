from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.views.defaults import server_error

from memoryhub.dashboard.design_tokens import Token, contrast, read_tokens
from memoryhub.dashboard.views.design import contrasts, sheet
from memoryhub.templatetags.memoryhub import register

ELSEWHERE = {  # what the page of the design system can't show, and why
    "sidenav.html": "the navigation of a workspace, which that page has none of",
    "section_tabs.html": "the tabs of a section, which that page is none of",
    "live.html": "attributes that let a part fetch itself, no picture",
    "live_changes.html": "asks for changes where a page has live parts",
    "consolidations.html": "figures of a workspace, on its overview",
    "loading.html": "stands for a part that fetches itself, which would replace it",
    "palette_row.html": "a row of the palette, which fetches its rows when it opens",
    "dismiss.html": "a form that dismisses a stored failure",
    "dismissal.html": "the same, on the page of the failure",
    "account_tabs.html": "tabs, filled in for one's own account",
}


@pytest.fixture
def shown_page(stranger_client: Client):
    return stranger_client.get(reverse("design"))


def test_every_include_is_shown_or_excepted_with_a_reason(shown_page, settings):
    includes = {path.name for path in (settings.BASE_DIR / "templates" / "includes").glob("*.html")}
    shown = {template.name.removeprefix("includes/") for template in shown_page.templates if template.name}

    assert includes - shown == set(ELSEWHERE) & includes
    assert set(ELSEWHERE) - includes == set()


def test_every_tag_and_filter_is_shown(settings):
    sources = "".join(
        path.read_text() for path in (settings.BASE_DIR / "templates" / "dashboard").glob("design*.html")
    )

    assert {name for name in register.tags if f"{{% {name} " not in sources} == set()
    assert {name for name in register.filters if f"|{name}" not in sources} <= {"words"}  # includes/badge.html has it


def test_no_two_parts_of_the_page_share_an_id(shown_page):
    ids = re.findall(r'\sid="([^"]+)"', shown_page.content.decode())

    assert [one for one in set(ids) if ids.count(one) > 1] == []


def test_the_page_is_small(shown_page):
    assert len(shown_page.content) < 150_000


def test_every_colour_contrasts_with_its_background():
    tokens = read_tokens(sheet())

    assert [(one.front.name, one.back.name) for one in contrasts(tokens) if not one.suffices] == []
    assert {token.name for token in tokens} >= {"paper", "ink", "accent", "space-1", "text-md"}


def test_contrast_follows_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#123456", "#123456") == 1


def test_tokens_are_read_as_written():
    css = ":root {\n    --ink: light-dark(#1a1d1c, #e7eae8);\n    --paper: #ffffff;\n    --gap: 1px  solid;\n  }\n"

    assert read_tokens(css) == [
        Token("ink", "light-dark(#1a1d1c, #e7eae8)", "#1a1d1c", "#e7eae8"),
        Token("paper", "#ffffff", "#ffffff", "#ffffff"),
        Token("gap", "1px solid"),
    ]


@pytest.mark.parametrize("is_signed_in", [True, False])
def test_a_missing_page_says_where_to_go(is_signed_in, client, db):
    if is_signed_in:
        client.force_login(User.objects.create_user("vera"))

    page = client.get("/nowhere/")

    assert page.status_code == 404
    assert ("All workspaces" in page.content.decode()) == is_signed_in
    assert ('href="/login/"' in page.content.decode()) == (not is_signed_in)


def test_a_page_without_a_fresh_token_says_what_to_do(db):
    page = Client(enforce_csrf_checks=True).post(reverse("login"), {"username": "a", "password": "b"})

    assert page.status_code == 403
    assert "Go back, reload the page and try again" in page.content.decode()


def test_the_page_of_an_error_needs_no_database(rf):
    page = server_error(rf.get("/"))

    assert page.status_code == 500
    assert b"Try again in a moment" in page.content
    assert b"css/tokens.css" in page.content
