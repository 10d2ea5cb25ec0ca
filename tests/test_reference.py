"""The reference is complete and true: what is in docs/ is what the code has."""

from __future__ import annotations

import re

import pytest
from django.core.management import get_commands

from tests.reference import PLACE, ROOT, pages

DEPLOY = ROOT / "deploy"


@pytest.mark.parametrize("name", pages())
def test_a_reference_page_is_what_the_code_has(name):
    """``make reference`` writes it anew."""
    assert (PLACE / name).read_text() == pages()[name]


def test_every_call_and_tool_is_told_in_its_page():
    calls = (PLACE / "calls.md").read_text()
    told = (ROOT / "docs" / "rest.md").read_text() + (ROOT / "docs" / "mcp.md").read_text()

    assert [name for name in re.findall(r"^\| `([^`]+)`", calls, re.MULTILINE) if f"| `{name}` |" not in told] == []


def test_every_page_of_the_documentation_is_reached_from_its_list():
    listed = set(re.findall(r"\]\(([\w/-]+\.md)\)", (ROOT / "docs" / "README.md").read_text()))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}

    assert there == listed


def test_no_link_of_the_documentation_leads_nowhere():
    broken = []
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")

    assert broken == []


def test_what_is_deployed_names_settings_and_commands_that_there_are():
    text = "".join(path.read_text() for path in DEPLOY.iterdir())
    named = set(re.findall(r"(MEMORYHUB_[A-Z_]+)", text))

    assert named <= set(re.findall(r"^## (\w+)$", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE))
    assert set(re.findall(r"manage\.py(?:, | \"|\", \"| )(\w+)", text)) <= set(get_commands())
