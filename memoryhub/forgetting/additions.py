"""Keep forgotten content out of what is added without a file, by the rules of imports.

Messages and documents lose the words, or the lines about a person. A row that contains them is refused, as a row of
an imported table is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoryhub.forgetting.import_filter import ImportRules, import_rules
from memoryhub.forgetting.matching import is_programs_name
from memoryhub.lib.errors import Invalid
from memoryhub.lib.layouts.records import DocumentRecord, EntryRecord
from sessions_app.models import Session, Workspace
from sessions_app.services.lifecycle import redacted_key

REFUSAL = "This contains forgotten content. An operator can allow it again on the page Forget or Data about a person."


def kept_key(workspace: Workspace, key: str) -> str:
    """Return the key under which a session is kept: the one that erasure gave it if it is of a forgotten person."""
    return key_by(import_rules(workspace), workspace, key)


def key_by(rules: ImportRules | None, workspace: Workspace, key: str) -> str:
    """Return what ``kept_key`` does, by rules that are known."""
    if rules is None or not (rules.mentions(key) or rules.is_session(key)):
        return key
    new = redacted_key(workspace, key)
    erased = Session.objects.filter(workspace=workspace, key__startswith=f"{new}-").order_by("id")
    return erased.values_list("key", flat=True).first() or new


def entries_by(rules: ImportRules | None, records: Sequence[EntryRecord]) -> Sequence[EntryRecord]:
    """Return entries without what the rules leave out."""
    return [rules.record(record) for record in records] if rules else records


def remembered_text(workspace: Workspace, text: str) -> str:
    """Return a text without forgotten words, for example a title or a reason."""
    rules = import_rules(workspace)
    return rules.text(text) if rules else text


def remembered_document(workspace: Workspace, name: str, text: str) -> str:
    """Return the text of a document without forgotten content. Raises Invalid if its name has forgotten words."""
    rules = import_rules(workspace)
    if rules is None:
        return text
    if rules.mentions(name) and not is_programs_name(name):
        raise Invalid(REFUSAL, code="forgotten")
    content: str = rules.record(DocumentRecord("", text), is_memory=True).content
    return content


def has_forgotten(workspace: Workspace, *values: Any, source: str = "") -> bool:
    """Tell whether a row would contain forgotten content. ``source``: where it says that it comes from."""
    rules = import_rules(workspace)
    return rules is not None and (rules.mentions([*values, source]) or rules.is_source(source))


def refuse_forgotten(workspace: Workspace, *values: Any, source: str = "") -> None:
    """Raise Invalid if a row would contain forgotten content. See ``has_forgotten``."""
    if has_forgotten(workspace, *values, source=source):
        raise Invalid(REFUSAL, code="forgotten")


def refuse_forgotten_fact(workspace: Workspace, name: str, text: str) -> None:
    """Raise Invalid if a fact would contain forgotten content, also what only a forgotten session taught."""
    if remembered_document(workspace, name, text) != text:
        raise Invalid(REFUSAL, code="forgotten")
