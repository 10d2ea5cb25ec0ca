import re
from pathlib import Path

from memoryhub.api.app import schema
from memoryhub.api.openapi import operations

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "rest.md").read_text()


def test_the_docs_list_every_call_with_its_scope():
    described = {
        (f"{method.upper()} {address.removeprefix('/api/v1')}", operation["x-scope"] or "any")
        for address, method, operation in operations(schema())
    }

    assert set(re.findall(r"^\| `(\w+ [^`]+)` \| (\w+) \|", PAGE, re.MULTILINE)) == described


def test_every_operation_documents_its_errors():
    for address, method, operation in operations(schema()):
        assert {"400", "401", "403", "422", "429", "503"} <= operation["responses"].keys(), address
        assert ("409" in operation["responses"]) == (method != "get"), address
