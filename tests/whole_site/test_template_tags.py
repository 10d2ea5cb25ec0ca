import re
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace

import pytest
import time_machine
from django import forms
from django.template import Context, Template
from django.template.loader import render_to_string

from memoryhub.lib import charts
from memoryhub.lib.time_charts import LAST, Series, time_chart

NOW = datetime(2025, 11, 4, 12, 0, tzinfo=UTC)


def render(source, **context):
    return Template(source).render(Context(context))


@pytest.fixture(autouse=True)
def _clock():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (timedelta(seconds=0), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=23), "23 h ago"),
        (timedelta(days=6), "6 d ago"),
        (timedelta(days=8), "27 Oct"),
        (timedelta(days=400), "30 Sep 2024"),
        (timedelta(seconds=-5), "in a moment"),
        (timedelta(hours=-2), "in 2 h"),
    ],
)
def test_ago_shows_the_elapsed_time(before, words):
    assert f">{words}</time>" in render("{{ at|ago }}", at=NOW - before)


def test_ago_carries_the_exact_time():
    html = render("{{ at|ago }}", at=NOW - timedelta(hours=1))
    assert 'datetime="2025-11-04T11:00:00+00:00"' in html
    assert 'title="4 Nov 2025, 11:00:00 UTC"' in html


def test_ago_accepts_a_time_without_a_zone():
    assert ">1 h ago</time>" in render("{{ at|ago }}", at=(NOW - timedelta(hours=1)).replace(tzinfo=None))


@pytest.mark.parametrize(
    ("source", "value", "shown"),
    [
        ("{{ x|tokens }}", 0, "0"),
        ("{{ x|tokens }}", 9_999, "9,999"),
        ("{{ x|tokens }}", 12_345, "12.3k"),
        ("{{ x|tokens }}", 999_949, "999.9k"),
        ("{{ x|tokens }}", 999_960, "1.0M"),
        ("{{ x|tokens }}", 4_500_000_000, "4.5B"),
        ("{{ x|filesize }}", 812, "812 B"),
        ("{{ x|filesize }}", 3_400, "3.4 kB"),
        ("{{ x|filesize }}", 1_200_000, "1.2 MB"),
        ("{{ x|filesize }}", 7_000_000_000, "7.0 GB"),
        ("{{ x|ratio }}", 3.456, "3.5×"),
        ("{{ x|ratio }}", 1234.5, "1,234×"),
        ("{{ x|percent }}", 0, "0%"),
        ("{{ x|percent }}", 0.004, "&lt;1%"),
        ("{{ x|percent }}", 0.354, "35%"),
        ("{{ x|percent }}", 0.999, "&gt;99%"),
        ("{{ x|percent }}", 1, "100%"),
        ("{{ x|words }}", "tool_result", "Tool result"),
        ("{{ x|words }}", "", ""),
        ("{{ x|words }}", "key_values", "Key-values"),
        ("{{ x|words }}", "earlier states of key values", "Earlier states of key-values"),
    ],
)
def test_figures_are_formatted_for_people(source, value, shown):
    assert render(source, x=value) == shown


@pytest.mark.parametrize("name", ["ago", "tokens", "filesize", "ratio", "percent"])
def test_an_unknown_value_is_a_dash(name):
    assert render(f"{{{{ x|{name} }}}}", x=None) == "—"


def test_card_escapes_its_title_and_keeps_its_content():
    html = render('{% card title=title note="n" anchor="a" %}<p>{{ title }}</p>{% endcard %}', title="<b>")
    assert html == (
        '<section class="card" id="a"><header class="section-head"><h2>&lt;b&gt;</h2><p>n</p></header>'
        "<p>&lt;b&gt;</p></section>"
    )


def test_card_without_title_has_no_head():
    assert render("{% card %}x{% endcard %}") == '<section class="card">x</section>'


def test_dialog_is_named_by_its_title():
    html = render('{% dialog "reset" title %}sure?{% enddialog %}', title="A & B")
    assert '<dialog class="dialog" id="reset" aria-labelledby="reset-title">' in html
    assert '<h2 id="reset-title">A &amp; B</h2>' in html


class SampleForm(forms.Form):
    name = forms.CharField(help_text="As <you> like")
    agree = forms.BooleanField(help_text="Needed")
    how = forms.ChoiceField(widget=forms.RadioSelect, choices=[("a", "A")], help_text="Pick")
    token = forms.CharField(widget=forms.HiddenInput, required=False)


@pytest.mark.parametrize("name", ["name", "agree", "how"])
def test_a_field_is_described_by_its_help_and_its_error(name):
    html = render_to_string("includes/field.html", {"field": SampleForm(data={})[name]})
    described = re.search(r'aria-describedby="([^"]+)"', html)
    assert described is not None
    assert described[1].split() == [f"id_{name}_helptext", f"id_{name}_error"]
    for target in described[1].split():
        assert f'id="{target}"' in html


def test_help_text_is_escaped():
    html = render_to_string("includes/field.html", {"field": SampleForm()["name"]})
    assert "As &lt;you&gt; like" in html


def test_a_hidden_field_has_no_label():
    html = render_to_string("includes/field.html", {"field": SampleForm()["token"]})
    assert html.strip() == '<input type="hidden" name="token" id="id_token">'


def test_pagination_links_only_where_there_is_a_page():
    page = {"previous_url": None, "next_url": "?after=9", "first_url": "?", "last_url": "?last"}
    html = render_to_string("includes/pagination.html", {"page": page, "text": "1–50 of 60"})
    assert re.findall(r'href="([^"]+)"', html.replace('href="#icon', "")) == ["?after=9", "?last"]
    assert "1–50 of 60" in html


def test_messages_are_the_out_of_band_element_on_request():
    assert 'id="messages" aria-live="polite" hx-swap-oob="innerHTML"' in render_to_string(
        "includes/messages.html", {"oob": True}
    )
    assert "hx-swap-oob" not in render_to_string("includes/messages.html", {})


def test_an_error_message_is_shown_as_a_problem():
    message = SimpleNamespace(level_tag="error", __str__=str)
    assert 'data-level="problem"' in render_to_string("includes/messages.html", {"messages": [message]})


def test_stored_text_in_a_turn_is_escaped_and_htmx_is_disabled():
    hostile = '<img src=x onerror=alert(1)><div hx-get="/x" hx-trigger="load">'
    entry = {"pk": 7, "position": 3, "kind": "message", "role": "user", "content": hostile}
    entry |= {"token_count": 9, "occurred_at": None}
    call = {"name": hostile, "brief": hostile, "arguments": hostile, "token_count": 1, "result": None}
    html = render_to_string(
        "includes/turn.html", {"entry": entry, "text": hostile, "calls": [call], "url": "#entry-7"}
    )
    assert "<img" not in html
    assert "<div hx-get" not in html
    assert re.search(r'<div class="prose verbatim" dir="auto" hx-disable>&lt;img', html)


def test_a_tool_call_without_result_says_so():
    html = render_to_string("includes/tool_call.html", {"call": {"name": "search", "token_count": 3, "result": None}})
    assert "No result" in html


DAY = date(2025, 11, 3)
CHARTS = {
    "bars": time_chart("Tokens", [Series("active", "A", {DAY: 1500}), Series("folded", "F", {DAY: 12_000})]),
    "line": time_chart("Total", [Series("active", "A", {DAY: 5, DAY + timedelta(days=1): 9})], how=LAST),
    "proportion": charts.proportion(original=1000, active=333, summary=50),
    "minimap": charts.minimap([charts.EntryRange("folded", 0, 2, "Folded", "#s")], [], length=7),
}


def include_of(name: str) -> str:
    return "includes/chart.html" if name in ("bars", "line") else f"includes/{name}.html"


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_has_a_name_and_plain_numbers_and_no_inline_style(name, settings):
    settings.USE_THOUSAND_SEPARATOR = True
    html = render_to_string(include_of(name), {"chart": CHARTS[name], "id": "one", "label": "What it shows"})
    assert "aria-label=" in html
    assert "<title>" in html or "<caption" in html
    assert "style" not in html
    assert not re.search(r' (x|y|width|height)="\d+,\d', html)


@pytest.mark.parametrize(("name", "cells"), [("bars", ["1,500", "12,000"]), ("line", ["5", "9"])])
def test_a_chart_has_its_figures_as_a_table(name, cells):
    html = render_to_string("includes/chart.html", {"chart": CHARTS[name], "id": "one", "label": "x"})
    assert re.findall(r"<td>([\d,]+)</td>", html) == cells


def test_every_icon_that_templates_name_exists(settings):
    root = settings.BASE_DIR / "templates"
    sheet = set(re.findall(r'id="icon-([a-z]+)"', (root / "includes" / "icon_sheet.html").read_text()))
    named = {
        name
        for file in root.rglob("*.html")
        for name in re.findall(r'(?:icon\.html" with name|icon)="([a-z]+)"', file.read_text())
    }
    assert named <= sheet


def test_no_template_has_inline_style_or_script(settings):
    for file in (settings.BASE_DIR / "templates").rglob("*.html"):
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)", file.read_text()), file
