from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.services.context_window import safe_window


@dataclass
class FakeEntry:
    position: int
    role: str
    content: str = "text"
    tool_call_id: str = ""
    tool_calls: list = field(default_factory=list)


def conversation(text: str) -> list[FakeEntry]:
    """u: user, a: assistant, e: assistant without text, C1 / C12: calls 1 (and 2), r1: result of call 1."""
    entries = []
    for position, word in enumerate(text.split()):
        if word == "u":
            entries.append(FakeEntry(position, "user"))
        elif word == "a":
            entries.append(FakeEntry(position, "assistant"))
        elif word == "e":
            entries.append(FakeEntry(position, "assistant", content=" "))
        elif word[0] == "C":
            entries.append(FakeEntry(position, "assistant", tool_calls=[{"id": number} for number in word[1:]]))
        else:
            entries.append(FakeEntry(position, "tool", tool_call_id=word[1:]))
    return entries


def kept(text: str, **options: int) -> list[int]:
    return [entry.position for entry in safe_window(conversation(text), **options).kept]


def test_a_whole_conversation_is_kept():
    assert kept("u C1 r1 a") == [0, 1, 2, 3]


def test_what_stands_before_the_first_user_message_goes():
    assert kept("r1 a u a") == [2, 3]


def test_without_a_user_message_nothing_is_cut_from_the_front():
    assert kept("a a") == [0, 1]


def test_empty_assistant_messages_are_dropped():
    window = safe_window(conversation("u C1 r1 e u e"))

    assert [entry.position for entry in window.kept] == [0, 1, 2, 4]
    assert window.dropped[0].why == "an assistant message without text or tool calls"


def test_a_result_before_its_call_is_no_answer():
    assert kept("u r1 C1 a") == [0, 3]


def test_dropping_a_call_drops_its_other_results():
    window = safe_window(conversation("u C12 r1 a"))

    assert [entry.position for entry in window.kept] == [0, 3]
    assert [(drop.position, drop.why) for drop in window.dropped] == [
        (1, "a tool call without all its results"),
        (2, "a tool result without its call"),
    ]


def test_only_the_last_messages_fit():
    assert kept("u a u a", max_messages=2) == [2, 3]
    assert kept("u a u a", max_messages=0) == [0, 1, 2, 3]


words = st.lists(st.sampled_from(["u", "a", "C1", "C2", "C12", "r1", "r2"]), max_size=10).map(" ".join)


@given(words, st.integers(0, 6))
def test_no_window_holds_an_orphan_and_every_entry_is_accounted_for(text, max_messages):
    window = safe_window(conversation(text), max_messages=max_messages)
    declared: set[str] = set()

    for entry in window.kept:
        declared |= {call["id"] for call in entry.tool_calls}
        assert entry.role != "tool" or entry.tool_call_id in declared
    assert len(window.kept) + len(window.dropped) == len(text.split())
