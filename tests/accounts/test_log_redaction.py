from __future__ import annotations

import logging

import pytest

from memoryhub.log_redaction import JsonLines, Lines, shorten_refusals


def said(message: object, *args: object, error: BaseException | None = None, formatter=None) -> str:
    caught = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, message, args, caught)
    return (formatter or Lines()).format(record)


@pytest.mark.parametrize("path", ["/invitation/abc-123_x", "/setup/abc-123_x"])
def test_tokens_of_links_are_masked(path):
    assert "abc" not in said(f"Not Found: {path}/")
    assert "abc" not in said("%s: %s", "Not Found", f"{path}/accept/")
    assert said("%s: %s", "Not Found", f"{path}/accept/").startswith("Not Found")


@pytest.mark.parametrize("formatter", [Lines(), JsonLines()])
def test_tokens_of_links_are_masked_in_tracebacks_and_in_any_value(formatter):
    try:
        raise ValueError("at /setup/abc-123_x/")
    except ValueError as error:
        text = said("failed", error=error, formatter=formatter)
        of_value = said(error, formatter=formatter) + said("%r", error, formatter=formatter)

    assert "Traceback" in text
    assert "abc" not in text + of_value


def test_other_urls_and_values_are_not_masked():
    assert said("Not Found: %s after %d ms", "/sessions/abc/", 12) == "Not Found: /sessions/abc/ after 12 ms"


def test_a_refused_host_is_logged_without_a_traceback():
    error = (ValueError, ValueError("Invalid HTTP_HOST header"), None)
    record = logging.LogRecord("django.security.DisallowedHost", logging.ERROR, "", 0, "Invalid host", (), error)

    assert shorten_refusals()(record)
    assert "Traceback" not in logging.Formatter().format(record)
