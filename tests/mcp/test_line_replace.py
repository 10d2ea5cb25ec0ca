import pytest

from knowledge_app.models import Fact, HeldChange, MemoryDocument
from memoryhub.mcp.calls import CODE
from tests.api.conftest import token_for
from tests.mcp.conftest import call
from tests.mcp.test_tools import with_document

pytestmark = pytest.mark.usefixtures("one_connection")
MORE = "".join(f"- {name} owns a boat\n" for name in ("Bo", "Cy", "Di", "Ed", "Flo", "Gus", "Hal", "Ida"))
TEXT = f"# Facts\n- Ana keeps bees\n- Robin swims\n  - in winter\n- Twice\n- Twice\n{MORE}"


def replace(workspace, *scopes, **arguments):
    with_document(workspace, "MEMORY.md", TEXT)
    return call(token_for(workspace, *scopes), "memory_line_replace", **arguments)


def text_now():
    return MemoryDocument.objects.select_related("head").get().head.content


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("- Ana keeps bees", "- Ana keeps busy bees", TEXT.replace("keeps bees", "keeps busy bees")),
        ("- in winter", "- in summer", TEXT.replace("winter", "summer")),
        ("- Robin swims", "", TEXT.replace("- Robin swims\n", "")),
    ],
)
def test_a_line_is_replaced_or_removed_and_the_rest_stays(workspace, old, new, after):
    result = replace(workspace, "append", "edit", name="memory.md", old=old, new=new, base=1)

    assert result.structured_content == {"document": "MEMORY.md", "status": "written", "revision": 2}
    assert text_now() == after


def test_without_the_scope_edit_the_change_is_proposed(workspace):
    result = replace(workspace, "append", old="- Ana keeps bees", new="- Ana keeps wasps")

    assert (result.structured_content["status"], text_now()) == ("held", TEXT)
    assert "wasps" in HeldChange.objects.get().proposed


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"old": "- Ana", "new": "x"}, "no_such_line"),
        ({"old": "- Twice", "new": "x"}, "many_lines"),
        ({"old": "- Robin swims", "new": "x", "base": 7}, "stale_base"),
        ({"old": "x", "new": "x", "name": "notes.md"}, "not_found"),
    ],
)
def test_a_line_that_cannot_be_replaced_is_refused(workspace, arguments, code):
    assert replace(workspace, "append", "edit", **arguments).meta[CODE] == code


def test_a_pinned_line_is_held_for_review(workspace):
    with_document(workspace, "MEMORY.md", TEXT)
    Fact.objects.filter(text="Robin swims").update(pinned=True)

    result = call(
        token_for(workspace, "edit", "append"), "memory_line_replace", old="- Robin swims", new="- Robin runs"
    )

    assert (result.structured_content["status"], text_now()) == ("held", TEXT)
