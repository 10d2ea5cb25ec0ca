import pytest

from knowledge_app.models import Fact, MemoryDocument, Observation
from memoryhub.mcp.calls import CODE
from tests.api.conftest import token_for
from tests.mcp.conftest import with_client
from tests.mcp.test_tools import with_document

pytestmark = pytest.mark.usefixtures("one_connection")
TEXT = "# Facts\n- Ana leads Atlas\n"


@pytest.mark.slow
@pytest.mark.postgres
def test_a_preference_is_remembered_found_and_corrected_and_pins_stay(workspace):
    """With nothing but the tools, over three connections of the official client."""
    with_document(workspace, "MEMORY.md", TEXT)
    Fact.objects.update(pinned=True)
    token = token_for(workspace, "read", "append")

    async def remember(client):
        await client.call_tool("memory_remember", {"content": "Robin prefers tabs over spaces"})

    async def correct(client):
        [hit] = (await client.call_tool("memory_recall", {"query": "tabs or spaces"})).structured_content["results"]
        new = {"kind": hit["kind"], "id": hit["id"], "text": "Robin prefers spaces over tabs"}
        return hit, (await client.call_tool("memory_correct", new)).structured_content["status"]

    async def touch_the_pin(client):
        [hit] = (await client.call_tool("memory_recall", {"query": "Atlas"})).structured_content["results"]
        row = {"kind": hit["kind"], "id": hit["id"]}
        line = {"old": "- Ana leads Atlas", "new": "- Bea leads Atlas"}
        found = await client.call_tool("memory_recall", {"query": "tabs or spaces"})
        return found.content[0].text, [
            await client.call_tool("memory_correct", row | {"text": "Bea leads Atlas"}),
            await client.call_tool("memory_withdraw", row),
            await client.call_tool("memory_line_replace", line),
            await client.call_tool("memory_document_propose", {"name": "MEMORY.md", "content": "# Facts\n"}),
        ]

    with_client(token, remember)
    hit, status = with_client(token, correct)
    text, attempts = with_client(token, touch_the_pin)

    assert (hit["text"], status) == ("Robin prefers tabs over spaces", "changed")
    assert "Robin prefers spaces over tabs" in text
    assert "Robin prefers tabs" not in text
    assert Observation.objects.count() == 1
    outcomes = [one.meta[CODE] if one.is_error else one.structured_content["status"] for one in attempts]
    assert outcomes == ["pinned", "pinned", "held", "pending"]
    assert MemoryDocument.objects.get().head.content == TEXT
