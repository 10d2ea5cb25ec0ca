"""Project rules that can be checked automatically."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.template.loader import get_template

from memoryhub.integrity.database import protections
from memoryhub.lib.database.append_only import installed_triggers, trigger_names
from tests.whole_site.test_login_required import routes

ROOT = Path(__file__).resolve().parent.parent
CODE = [*ROOT.glob("memoryhub/**/*.py"), *ROOT.glob("sessions_app/**/*.py"), *ROOT.glob("knowledge_app/**/*.py")]
TESTS = [*ROOT.glob("tests/**/*.py")]
ELSEWHERE = {"nanobot": "installed by the drill itself", "cluster": "deploy/cluster/cluster.py"}
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


@pytest.mark.django_db
def test_migrations_are_complete():
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


@pytest.mark.django_db
def test_append_only_tables_are_protected_after_all_migrations():
    wanted = {name for protection in protections() for name in trigger_names(protection.table, connection.vendor)}

    assert len(wanted) == 15
    assert wanted <= installed_triggers(connection)


def test_only_one_module_marks_text_as_safe():
    marking = [
        path.relative_to(ROOT).as_posix() for path in CODE if re.search(r"\bmark_safe\(|\|safe\b", path.read_text())
    ]

    assert marking == ["memoryhub/lib/text/markdown.py"]
    assert [
        path.name for path in TEMPLATES if "|safe" in path.read_text() or "autoescape off" in path.read_text()
    ] == []


def test_templates_hold_no_inline_script_style_or_handler():
    inline = re.compile(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|hx-on", re.IGNORECASE)

    assert [path.name for path in TEMPLATES if inline.search(path.read_text())] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(ROOT / "templates").as_posix())
def test_every_template_compiles(path):
    get_template(path.relative_to(ROOT / "templates").as_posix())


def test_included_and_extended_templates_exist():
    """``{% include %}`` fails only when it is rendered, which a condition may hide."""
    named = re.compile(r'{% (?:include|extends) "([^"]+)"')
    names = {name for path in TEMPLATES for name in named.findall(path.read_text())}

    assert len(names) > 50
    for name in names:
        get_template(name)


def test_every_setting_is_documented():
    settings = (ROOT / "memoryhub" / "settings.py").read_text()
    names = set(re.findall(r'"(MEMORYHUB_\w+|DATABASE_(?:DIRECT_)?URL|CACHE_URL)"', settings))
    headings = set(re.findall(r"^## (\w+)$", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE))

    assert names == headings


def test_no_archive_or_database_is_in_the_repository():
    """Backups and databases hold people's data, and a test or a command run by hand can leave them in this folder."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)

    names = listed.stdout.splitlines()
    assert [name for name in names if re.search(r"\.(tar|tgz|tar\.gz|zip|enc|sqlite3.*|dump)$", name)] == []


def test_only_the_settings_read_the_environment():
    readers = [path.relative_to(ROOT).as_posix() for path in CODE if "os.environ" in path.read_text()]

    assert set(readers) <= {"memoryhub/settings.py", "memoryhub/wsgi.py", "memoryhub/asgi.py"}


def test_every_page_is_documented():
    text = (ROOT / "docs" / "pages.md").read_text()
    parts = {re.sub(r"<[^>]+>", "", str(pattern.pattern)).split("/")[0] for _, pattern in routes()}

    assert {part for part in parts if part and f"/{part}" not in text} == set()


def test_files_stay_small():
    long = {
        path.relative_to(ROOT).as_posix(): len(path.read_text().split("\n"))
        for path in [*CODE, *TESTS]
        if "migrations" not in path.parts
    }

    assert {name: count for name, count in long.items() if count > 400} == {}


def _functions(parent: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        if not isinstance(node, ast.expr):  # most of what there is; its functions are lambdas
            yield from _functions(node)


@pytest.mark.slow
def test_functions_stay_short():
    long = {
        f"{path.relative_to(ROOT).as_posix()} {node.name}": lines
        for path in [*CODE, *TESTS, *ROOT.glob("bench/**/*.py")]
        if (text := path.read_text()).count("\n") >= 60
        for node in _functions(ast.parse(text))
        if node.end_lineno is not None and (lines := node.end_lineno - node.lineno + 1) > 60
    }

    assert long == {}


def test_folders_stay_small():
    folders = Counter(path.parent.relative_to(ROOT).as_posix() for path in [*CODE, *TESTS] if path.stem != "__init__")
    del folders["memoryhub/management/commands"]

    assert {name: count for name, count in folders.items() if count > 30} == {}


def test_benchmarks_import_modules_that_exist():
    missing = {
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in ROOT.glob("bench/**/*.py")
        for name in imported(path)
        if not exists(name, path.parent)
    }

    assert missing == set()


def imported(path: Path) -> set[str]:
    """Return the modules that a file imports, without the names that it takes from them."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names = plain | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name for name in names if name.split(".")[0] not in ELSEWHERE}


def exists(name: str, folder: Path) -> bool:
    """Tell whether a script in a folder can import a module: one beside it, of the project or installed."""
    parts = name.split(".")
    found = [base.joinpath(*parts) for base in (folder, ROOT / "bench", ROOT)]
    if any(path.is_dir() or path.with_suffix(".py").is_file() for path in found):
        return True
    is_own = (ROOT / parts[0]).is_dir()
    return not is_own and find_spec(parts[0]) is not None
