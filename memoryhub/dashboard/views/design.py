"""The design system as a live page: tokens and components from the real style sheets and templates."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from memoryhub.dashboard.design_tokens import Contrast, Token, meeting, read_tokens
from memoryhub.lib import charts
from memoryhub.lib.bulk_selection import Action
from memoryhub.lib.http.htmx import render_page
from memoryhub.lib.text.diff import diff_lines
from memoryhub.lib.text.markdown import render_markdown
from memoryhub.lib.time_charts import LAST, Event, Series, time_chart

TEXT, LINE = 4.5, 3.0  # minimum contrast of text and of anything else (WCAG 2.2, 1.4.3 and 1.4.11)
MEETINGS = [
    *((front, back, TEXT) for front in ("ink", "ink-2", "ink-3") for back in ("paper", "surface", "sunken", "hover")),
    *((front, back, TEXT) for front in ("accent", "accent-strong") for back in ("paper", "surface", "accent-soft")),
    *((tone, f"{tone}-soft", TEXT) for tone in ("good", "warn", "bad")),
    *((tone, "paper", TEXT) for tone in ("good", "warn", "bad")),
    ("on-accent", "accent", TEXT),
    ("on-accent", "accent-strong", TEXT),
    ("ink", "mark", TEXT),
    ("control-line", "surface", LINE),
    ("accent", "sunken", LINE),
    ("chart-solid", "paper", LINE),
    ("chart-hatch", "paper", LINE),
    *((f"kind-{kind}", "graph-ground", LINE) for kind in ("person", "project", "section", "tag", "session", "term")),
]
SAMPLES = [
    ("Arabic", "تم النشر يوم الثلاثاء، ولا ننشر أبداً يوم الجمعة: git push ثم انتظر ٥ دقائق."),
    ("Hebrew", "הפריסה יוצאת ביום שלישי (ולא ביום שישי), בערך 5 דקות אחרי make deploy."),
    ("Chinese", "部署在星期二进行，绝不在星期五。命令是 git push，然后等待五分钟。"),
    ("Japanese", "デプロイは火曜日に行います。金曜日には決して行いません。ぎょうざ、ゃゅょ。"),
    ("Korean", "배포는 화요일에 나갑니다. 금요일에는 절대 하지 않습니다."),
    ("Thai", "การปรับใช้จะทำในวันอังคาร ไม่เคยทำในวันศุกร์ ที่นี่ น้ำ ผู้ใหญ่"),
    ("Mixed", "ERR-404 في الخادم (server-7) قبل 3:40 PM — راجع docs/شرح.md"),
]
LONG = "A title that goes on for longer than anybody would want to read in one line, and then still a little further"
WORD = "telegram:" + "antidisestablishmentarianism" * 4
SAID = "Deploys go out on **Tuesdays**.\n\n1. Tag it.\n2. Wait five minutes.\n\n```sh\nmake deploy\n```"


class SampleForm(forms.Form):
    name = forms.CharField(help_text="Up to 40 characters.")
    channel = forms.ChoiceField(choices=[("", "Any"), ("cli", "cli"), ("telegram", "telegram")], required=False)
    note = forms.CharField(widget=forms.Textarea, required=False)
    is_pinned = forms.BooleanField(
        label="Pin it", required=False, help_text="Pinned rows stay when memory is tidied."
    )
    kind = forms.ChoiceField(widget=forms.RadioSelect, choices=[("fact", "A fact"), ("rule", "A rule")])

    def clean(self) -> dict[str, Any]:
        raise forms.ValidationError("Nothing was saved: two fields are not right yet.")


@require_GET
def design(request: HttpRequest) -> HttpResponse:
    messages.success(request, "A message of what was done: it stands here until it is dismissed.")
    context = _tokens() | _charts() | _lists() | _reading()
    context |= {
        "form": SampleForm(auto_id="good_%s", initial={"name": "atlas"}),
        "wrong": SampleForm({"name": ""}, auto_id="wrong_%s"),
        "samples": SAMPLES,
        "long_title": LONG,
        "long_word": WORD,
    }
    return render_page(request, "dashboard/design.html", context)


def sheet() -> str:
    """Return the path of the style sheet with the tokens."""
    found = finders.find("css/tokens.css")
    return Path(found).read_text(encoding="utf-8") if isinstance(found, str) else ""


def contrasts(tokens: list[Token]) -> list[Contrast]:
    by_name = {token.name: token for token in tokens}
    return [meeting(by_name, front, back, least) for front, back, least in MEETINGS]


def _tokens() -> dict[str, Any]:
    tokens = read_tokens(sheet())
    return {
        "colours": [token for token in tokens if token.light],
        "contrasts": contrasts(tokens),
        "sizes": [token for token in tokens if token.name.startswith("text-")],
        "spaces": [token for token in tokens if token.name.startswith("space-")],
        "others": [token for token in tokens if not token.light and not token.name.startswith(("text-", "space-"))],
    }


def _charts() -> dict[str, Any]:
    day = date(2025, 11, 3)
    totals = [(3_000, 9_000), (5_200, 12_400), (1_100, 0), (8_800, 2_000), (400, 15_000)]
    days = [day + timedelta(days=number) for number in range(len(totals))]
    active = Series("active", "In the context", {day: total[0] for day, total in zip(days, totals, strict=True)})
    folded = Series("folded", "Compressed", {day: total[1] for day, total in zip(days, totals, strict=True)})
    events = [Event("run", days[1], "1 run"), Event("import", days[3], "2 imports")]
    stretches = [
        charts.EntryRange("consolidated", 0, 39, "40 entries consolidated", "#reading"),
        charts.EntryRange("folded", 12, 30, "entries 12 to 30 folded", "#reading"),
        charts.EntryRange("live", 40, 99, "60 entries in the context", "#reading"),
    ]
    marks = [charts.Mark("pointer", 40, "pointer at 40"), charts.Mark("epoch", 70, "the session begins anew")]
    return {
        "bars": time_chart("Tokens", [active, folded], events=events),
        "area": time_chart("Entries over time", [active], how=LAST),
        "share": charts.proportion(original=12_345, active=4_000, summary=380),
        "map": charts.minimap(stretches, marks, length=100),
    }


def _lists() -> dict[str, Any]:
    now = timezone.now()
    old = "# Deploys\n\n- on Mondays\n- from main\n\nThe rest\nstays\nas\nit\nis"
    return {
        "button_kinds": ("", "primary", "quiet", "danger"),
        "crumbs": [{"label": "Conversations", "url": "#lists"}, {"label": "telegram:1042", "url": ""}],
        "page": {"previous_url": "#lists", "next_url": "#lists", "first_url": "#lists", "last_url": "#lists"},
        "moments": [now, now - timedelta(days=40), None],
        "actions": [Action("pin", "Pin"), Action("withdraw", "Withdraw", asks="text", label="Why", is_danger=True)],
        "parts": {"session_total": 214, "history_total": 10_000, "knowledge_total": 1},
        "gauge": {"fill": 80, "mark": 60, "is_over": True},
        "attention_items": [_attention_item("warning", "1 change awaits review"), _attention_item("problem", WORD)],
        "diff": diff_lines(old, old.replace("Mondays", "Tuesdays") + "\nnow", around=1),
    }


def _attention_item(severity: str, text: str) -> dict[str, Any]:
    since = timezone.now() - timedelta(hours=5)
    item = {"key": severity, "severity": severity, "text": text, "label": "Sample", "name": "Atlas", "url": "#lists"}
    return item | {"since": since, "count": 1, "action": "Review", "dismissed_as": ""}


def _reading() -> dict[str, Any]:
    result = SimpleNamespace(pk=3, position=3, url="#reading", content="deployed\nin 4 min 12 s")
    failure = SimpleNamespace(pk=30, position=30, url="#reading", content="Error: no such host")
    call = {"name": "shell", "brief": "make deploy", "arguments": '{\n  "c": "make deploy"\n}', "token_count": 41}
    return {
        "asked": _entry(1, "user", "When do deploys go out?"),
        "answered": _entry(2, "assistant", SAID),
        "answer": render_markdown(SAID),
        "calls": [
            call | {"open": True, "state": "", "result": result},
            call | {"open": False, "state": "error", "result": failure},
            call | {"open": False, "state": "", "result": None},
        ],
        "system": _entry(4, "system", "You are a careful assistant."),
        "spoken": [_entry(number, "user", text) for number, (_, text) in enumerate(SAMPLES[1:5], start=5)],
    }


def _entry(number: int, role: str, content: str) -> dict[str, Any]:
    at = timezone.now() - timedelta(minutes=60 - number)
    entry = {"pk": number, "position": number, "role": role, "kind": "message", "content": content}
    return entry | {"token_count": len(content) // 4, "occurred_at": at, "name": ""}
