"""The reference documentation matches the code."""

from __future__ import annotations

import re

import pytest
from django.core.management import get_commands

from tests.reference import PLACE, ROOT, pages

DEPLOY = ROOT / "deploy"


@pytest.mark.parametrize("name", pages())
def test_reference_page_matches_the_code(name):
    """``make reference`` updates it."""
    assert (PLACE / name).read_text() == pages()[name]


def test_every_call_and_tool_is_documented():
    calls = (PLACE / "calls.md").read_text()
    pages = (ROOT / "docs" / "rest.md").read_text() + (ROOT / "docs" / "mcp.md").read_text()

    assert [name for name in re.findall(r"^\| `([^`]+)`", calls, re.MULTILINE) if f"| `{name}` |" not in pages] == []


def test_every_documentation_page_is_listed():
    listed = set(re.findall(r"\]\(([\w/-]+\.md)\)", (ROOT / "docs" / "README.md").read_text()))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}

    assert there == listed


def test_documentation_has_no_broken_links():
    broken = []
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")

    assert broken == []


def test_deployment_files_name_existing_settings_and_commands():
    text = "".join(path.read_text() for path in DEPLOY.iterdir())
    named = set(re.findall(r"(MEMORYHUB_[A-Z_]+)", text))

    assert named <= set(re.findall(r"^## (\w+)$", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE))
    assert set(re.findall(r"manage\.py(?:, | \"|\", \"| )(\w+)", text)) <= set(get_commands())
