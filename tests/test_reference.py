"""The reference documentation matches the code."""

import re
import tomllib

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
    files = (path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".pyc")
    text = "".join(path.read_text() for path in files)
    named = set(re.findall(r"(MEMORYHUB_[A-Z_]+)", text))

    assert named <= set(re.findall(r"^## (\w+)$", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE))
    assert set(re.findall(r"manage\.py(?:, | \"|\", \"| )(\w+)", text)) <= set(get_commands())


def test_documentation_names_existing_files():
    text = "\n".join(page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    named = re.findall(
        r"(?<![\w/])((?:memoryhub|sessions_app|knowledge_app|bench|tests|static)/[\w/-]+\.(?:py|js|css))", text
    )

    assert [path for path in sorted(set(named)) if not (ROOT / path).exists()] == []


def test_architecture_page_names_existing_modules_and_functions():
    missing = []
    for item in re.split(r"\n(?=\d+\. |- |\n)", (ROOT / "docs" / "architecture.md").read_text()):
        paths = re.findall(r"`((?:memoryhub|\w+_app|bench)/[\w/]+\.py)`", item)
        code = "".join((ROOT / path).read_text() for path in paths if (ROOT / path).exists())
        missing += [path for path in paths if not (ROOT / path).exists()]
        missing += [name for name in re.findall(r"`(\w+)\(\)`", item) if f"def {name}(" not in code]

    assert missing == []


def test_architecture_page_names_existing_files_of_each_package():
    page = (ROOT / "docs" / "architecture.md").read_text().partition("## Data flows")[0]
    missing = []
    for package, text in re.findall(r"^- \*\*`([\w/]+)/`\*\*(.*?)(?=^- |^#|\Z)", page, re.MULTILINE | re.DOTALL):
        places = [ROOT / package, ROOT / package / "services", *(ROOT / path for path in ("memoryhub", "."))]
        named = re.findall(r"`([\w/]+(?:\.py|/))`", text)
        missing += [f"{package}: {name}" for name in named if not any((place / name).exists() for place in places)]

    assert missing == []


def test_architecture_page_shows_the_layers_that_are_checked():
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    page = (ROOT / "docs" / "architecture.md").read_text()
    shown = page.partition("```\n")[2].partition("```")[0]

    assert [line.split() for line in shown.strip().splitlines()] == [
        [name.removeprefix("memoryhub.") for name in layer.split(" | ")] for layer in layers
    ]
