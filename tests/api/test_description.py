import re
from pathlib import Path

from memoryhub.api.app import schema
from memoryhub.api.openapi import operations

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "rest.md").read_text()


def test_the_page_names_every_call_and_its_scope():
    described = {
        (f"{method.upper()} {address.removeprefix('/api/v1')}", operation["x-scope"] or "any")
        for address, method, operation in operations(schema())
    }

    assert set(re.findall(r"^\| `(\w+ [^`]+)` \| (\w+) \|", PAGE, re.MULTILINE)) == described


def test_every_call_says_what_may_go_wrong():
    for address, method, operation in operations(schema()):
        assert {"400", "401", "403", "422", "429", "503"} <= operation["responses"].keys(), address
        assert ("409" in operation["responses"]) == (method != "get"), address
