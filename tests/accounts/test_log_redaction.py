from __future__ import annotations

import logging

import pytest

from memoryhub.log_redaction import without_links


def said(message: object, *args: object) -> str:
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, message, args, None)
    assert without_links()(record)
    return record.getMessage()


@pytest.mark.parametrize("path", ["/invitation/abc-123_x", "/setup/abc-123_x"])
def test_a_link_that_lets_somebody_in_is_not_written_to_the_log(path):
    assert "abc" not in said(f"Not Found: {path}/")
    assert "abc" not in said("%s: %s", "Not Found", f"{path}/accept/")
    assert said("%s: %s", "Not Found", f"{path}/accept/").startswith("Not Found")


def test_other_addresses_and_values_are_logged_as_they_are():
    assert said("Not Found: %s after %d ms", "/sessions/abc/", 12) == "Not Found: /sessions/abc/ after 12 ms"
