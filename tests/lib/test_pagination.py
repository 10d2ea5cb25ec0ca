import base64
import json
from datetime import UTC, datetime, timedelta
from itertools import chain
from urllib.parse import parse_qs

import pytest
from django.http import QueryDict

from memoryhub.lib.http.pagination import Page, keyset_page, parse_int, parse_ints, rows_after
from sessions_app.models import Session, Workspace
from tests.hub import raises_code

pytestmark = pytest.mark.django_db
START = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = [("-updated_at", "-id"), ("key", "id"), ("-entry_count", "-id"), ("updated_at", "-key")]


@pytest.fixture
def sessions() -> None:
    """Create 23 rows, many of which differ only in the last field of an order."""
    workspace = Workspace.objects.create(slug="w", name="W")
    Session.objects.bulk_create(
        Session(
            workspace=workspace,
            key=f"cli:{number:02}",
            channel="cli",
            entry_count=number % 3,
            updated_at=START + timedelta(microseconds=number // 5),
        )
        for number in range(23)
    )


def page(order: tuple[str, ...], query: str, size: int = 5) -> Page[Session]:
    return keyset_page(Session.objects.all(), order=order, params=QueryDict(query.removeprefix("?")), size=size)


def keys(found: Page[Session]) -> list[str]:
    return [row.key for row in found.rows]


@pytest.mark.parametrize("order", ORDERS)
def test_paging_forwards_and_back_shows_every_row_once_in_order(order, sessions):
    everything = list(Session.objects.order_by(*order).values_list("key", flat=True))
    forth, found = [], page(order, "")
    while True:
        forth.append(keys(found))
        if not found.next_url:
            break
        found = page(order, found.next_url)
    back = [keys(found)]
    while found.previous_url:
        found = page(order, found.previous_url)
        back.insert(0, keys(found))

    assert list(chain(*forth)) == everything
    assert list(chain(*back)) == everything
    assert back == forth


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [5, 22, 23, 24])
def test_cursors_return_every_row_once_in_order(order, size, sessions):
    walked, cursor = [], ""
    while cursor is not None:
        rows, cursor = rows_after(Session.objects.all(), order=order, cursor=cursor, size=size)
        walked.append([row.key for row in rows])

    assert list(chain(*walked)) == list(Session.objects.order_by(*order).values_list("key", flat=True))
    assert [len(keys) for keys in walked[:-1]] == [size] * (len(walked) - 1)
    assert walked[-1]


def test_the_last_page_can_be_requested(sessions):
    first = page(("key", "id"), "")

    last = page(("key", "id"), first.last_url)

    assert keys(last)[-1] == "cli:22"
    assert last.next_url == ""
    assert keys(page(("key", "id"), last.previous_url))[-1] == "cli:17"


def test_other_parameters_are_kept_in_the_urls(sessions):
    found = page(("key", "id"), "?sort=key&q=a%26b")

    assert parse_qs(found.next_url[1:]).keys() == {"sort", "q", "after"}
    assert parse_qs(found.next_url[1:])["q"] == ["a&b"]


@pytest.mark.parametrize(
    "cursor", ["%00", "bm90IGpzb24", "WzFd", "W3siYXQiOiAxfSwgMV0", "W1tdLCB7fV0", "=" * 9, "W3RydWUsIDFd"]
)
@pytest.mark.parametrize("way", ["after", "before"])
def test_an_invalid_cursor_shows_the_first_page(cursor, way, sessions):
    assert keys(page(("-updated_at", "-id"), f"?{way}={cursor}")) == keys(page(("-updated_at", "-id"), ""))


def test_a_page_past_the_end_links_back(sessions):
    last = page(("key", "id"), "?page=last")
    beyond = page(("key", "id"), last.previous_url).next_url
    Session.objects.filter(key__gte="cli:10").delete()

    found = page(("key", "id"), beyond)

    assert keys(found) == []
    assert found.first_url == "?"


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("12", 12), ("9" * 18, int("9" * 18)), ("9" * 19, None), ("-1", None), ("1.5", None), ("²", None)],
)
def test_integers_in_urls_fit_a_primary_key(text, number):
    assert parse_int(text) == number
    assert parse_ints(["7", text, ""]) == ([7] if number is None else [7, number])


FIRST_MOMENT = "0001-01-01T00:00:00+14:00"  # before datetime.min in UTC
FORGED = [["abc"], [1e400], [2**70], ["\x00"], ["\ud800"], [{"at": "2026-02-31T00:00"}], [{"at": FIRST_MOMENT}]]


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize("values", FORGED)
@pytest.mark.parametrize("order", [("-id",), ("key",), ("-updated_at",)])
def test_a_forged_cursor_does_not_raise(workspace, values, order):
    Session.objects.create(workspace=workspace, key="cli:a", channel="cli")
    params = QueryDict(f"before={encoded(json.dumps(values))}")

    page = keyset_page(Session.objects.all(), order=order, params=params)

    assert len(page.rows) <= 1


@pytest.mark.parametrize("text", ["[" * 1_400, '["abc"]', "[]", f'[{{"at": "{FIRST_MOMENT}"}}]'])
def test_an_invalid_cursor_of_an_agent_raises_not_found(workspace, text):
    with raises_code("bad_cursor"):
        rows_after(Session.objects.all(), order=("-updated_at",), cursor=encoded(text), size=5)
