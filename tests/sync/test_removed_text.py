"""What a person removed or corrected is held when an agent adds it again, wherever and in whatever form it comes."""

from datetime import timedelta
from pathlib import Path

import pytest

from knowledge_app.models import HeldChange, HeldRow, KeyValue, KnowledgeEntry, MemoryDocument
from knowledge_app.services.documents.proposals import append_fact, propose_text, write_text
from knowledge_app.services.rows.agent_changes import change_entry_as_agent
from knowledge_app.services.rows.held_row_decisions import approve_row
from knowledge_app.services.rows.key_values import write_value
from knowledge_app.services.rows.knowledge import add_knowledge, save_entry
from knowledge_app.services.rows.observations import NewObservation, store
from knowledge_app.services.rows.undoable_edits import edit_rows
from memoryhub.integrity import check_memory
from memoryhub.lib.text.repeats import Repeats
from memoryhub.runs.review import approve, reject
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.runs import cancel_run
from tests.hub import AGENT, PERSON
from tests.sync.test_agent_rewrites import DAY, START, TEXT, atlas, file, head, save, sync, write

__all__ = ["atlas", "file"]
pytestmark = pytest.mark.django_db
WRONG = "The shop is closed on Monday"
RUN = Actor("run", "run 1")


@pytest.fixture
def removed(atlas: Workspace, file: Path) -> Workspace:
    """The workspace a day after a person removed a fact, which the agent's file lacks since."""
    write(file, f"{TEXT}- {WRONG}\n", 0)
    sync(atlas, 0)
    save(head().replace(f"- {WRONG}\n", ""), 1)
    sync(atlas, 1)
    return atlas


def by(actor: Actor, seconds: float = DAY) -> By:
    return By(actor, START + timedelta(seconds=seconds))


def document() -> MemoryDocument:
    return MemoryDocument.objects.select_related("head", "workspace").get(name="MEMORY.md")


def held_count() -> int:
    return HeldChange.objects.filter(status="pending").count() + HeldRow.objects.count()


FORMS = [
    f"1. {WRONG}",
    f"{WRONG}.",
    f"> {WRONG}",
    f"- [ ] {WRONG}",
    f"## {WRONG}",
    f"| {WRONG} | yes |",
    f"- The baker called. {WRONG}, she says",
    "- Closed on Monday is the shop",
    "- The shop is\n  closed on Monday",
    "- The **shop** is cl\u00f3sed on M\u043enday",
    "- \uff34he\u3000shop is closed on Monday",
]


@pytest.mark.slow
@pytest.mark.parametrize("line", FORMS)
def test_a_removed_fact_is_held_in_every_form_of_a_line(removed, file, line):
    write(file, f"{file.read_text()}\n{line}\n", DAY)
    sync(removed, DAY + 1)

    assert "monday" not in head().lower()
    assert HeldChange.objects.filter(status="pending").exists()
    assert check_memory().broken == []


@pytest.mark.slow
@pytest.mark.parametrize("line", FORMS)
def test_a_removed_fact_is_held_when_it_is_written_over_rest(removed, line):
    written = write_text(
        document(), f"{head()}\n{line}\n", base_number=document().head.number, by=by(AGENT), reason=""
    )

    assert written.held
    assert "monday" not in head().lower()


def test_a_removed_fact_is_held_in_another_document(removed, file):
    write(file.parent.parent / "USER.md", f"# User\n\n- likes tea\n- {WRONG}\n", DAY)
    sync(removed, DAY + 1)

    other = MemoryDocument.objects.select_related("head").get(name="USER.md")
    assert other.head.content == "# User\n\n- likes tea\n"
    assert HeldChange.objects.get(document=other).reason == "1 new fact was removed or corrected earlier"


def test_a_fact_that_another_document_has_is_not_removed(removed, file):
    user = file.parent.parent / "USER.md"
    write(user, f"# User\n\n- {WRONG}\n", 0)
    sync(removed, 2)
    change = HeldChange.objects.get(document__name="USER.md")
    approve(change, by=by(PERSON, 3))

    assert append_fact(document(), WRONG, by=by(AGENT)).revision


def test_a_removed_line_that_is_no_list_item_is_held(atlas, file):
    text = TEXT.replace("## Facts\n", f"## Facts\n\n{WRONG}.\n")
    write(file, text, 0)
    sync(atlas, 0)
    save(head().replace(f"{WRONG}.\n", ""), 1)
    sync(atlas, 1)

    write(file, text, DAY)
    sync(atlas, DAY + 1)

    assert WRONG not in head()
    assert held_count()


def learn(workspace: Workspace, actor: Actor, text: str) -> None:
    add_knowledge(workspace, text, category="learned_fact", by=by(actor))


def observe(workspace: Workspace, actor: Actor, text: str) -> None:
    store(workspace, [NewObservation("finding", text)], by=by(actor))


def set_value(workspace: Workspace, actor: Actor, text: str) -> None:
    write_value(workspace, "opening hours", text, by=by(actor))


@pytest.mark.parametrize("add", [learn, observe, set_value])
def test_a_removed_fact_is_held_as_a_row(removed, add):
    add(removed, AGENT, f"{WRONG}!")

    assert HeldRow.objects.get().findings[0]["code"] == "removed"


@pytest.mark.parametrize("add", [learn, observe])
def test_what_a_run_finds_again_is_held(removed, add):
    add(removed, RUN, WRONG)

    assert HeldRow.objects.get().findings[0]["code"] == "removed"


@pytest.mark.parametrize("add", [learn, observe, set_value])
def test_a_person_may_add_again_what_was_removed(removed, add):
    add(removed, PERSON, WRONG)

    assert not HeldRow.objects.exists()


@pytest.mark.parametrize("action", ["withdraw", "assign"])
@pytest.mark.parametrize("category", ["learned_fact", "user_preference"])
def test_knowledge_that_a_person_withdrew_or_corrected_is_held_under_another_category(atlas, action, category):
    entry = add_knowledge(atlas, WRONG, category="learned_fact", by=by(AGENT, 0)).entry
    values = {"content": "The shop is open"} if action == "assign" else {}
    edit_rows(atlas, "knowledge", action, [entry.pk], values=values, by=by(PERSON, 1))

    again = add_knowledge(atlas, f"{WRONG}.", category=category, by=by(AGENT)).entry

    assert HeldRow.objects.get().knowledge == again


@pytest.mark.parametrize("actor", [PERSON, AGENT])
def test_an_agent_may_say_again_what_it_withdrew_itself(atlas, actor):
    entry = add_knowledge(atlas, WRONG, category="learned_fact", by=by(AGENT, 0)).entry
    edit_rows(atlas, "knowledge", "withdraw", [entry.pk], by=by(actor, 1))

    append_fact(document(), WRONG, by=by(AGENT))

    assert bool(held_count()) == (actor == PERSON)


def test_an_agent_that_rewords_its_own_row_to_what_was_removed_is_held(removed):
    learn(removed, AGENT, "The baker is open")

    save_entry(KnowledgeEntry.objects.get(), {"content": WRONG}, by=by(AGENT, DAY + 1))

    assert HeldRow.objects.exists()


def test_a_key_that_an_agent_takes_back_in_is_held_if_its_value_was_removed_since(removed):
    set_value(removed, AGENT, WRONG)
    approve_row(HeldRow.objects.get(), by=by(PERSON))
    edit_rows(removed, "key_values", "withdraw", [KeyValue.objects.get().pk], by=by(AGENT))

    set_value(removed, AGENT, WRONG)

    assert HeldRow.objects.get().findings[0]["code"] == "removed"


@pytest.mark.parametrize(
    ("removed", "line", "is_repeat"),
    [
        ("The shop is closed", "- The shop is closed on Monday", True),
        ("The shop is closed", "- The shop is not closed", False),
        ("The shop is not closed", "- The shop is not closed on Monday", True),
        ("Olga", "- Olga leads the team", False),
        ("Olga", "* **Olga**.", True),
        ("likes tea", "- tea likes", False),
        ("用户喜欢喝绿茶", "- 用户喜欢喝绿茶，也喜欢咖啡", True),
        ("用户喜欢茶", "- 用户不喜欢茶", False),
        ("Пользователь живёт в Казани", "1) пользователь живет в Казани", True),
        ("The shop\nis closed on Monday", "The shop is closed on Monday", True),
        ("---", "- anything", False),
        ("Olga works at Initech in Lisbon", "Olga works at Initech in Lisbon; no longer in Porto", True),
        ("Olga works at Initech in Lisbon", "Olga works at Initech in Lisbon (not Porto)", True),
        ("Olga works at Initech in Lisbon", "Olga works <b>at</b> &#73;nitech<br>in Lisbon", True),
        ("Olga works at Initech in Lisbon", "Olga_works_at_Initech_in_Lisbon", True),
        ("Olga works at Initech in Lisbon", "In Lisbon, Olga works at Initech", True),
        ("Olga works at Initech", "Olga works at Initech's rival", False),
        ("Olga likes tea", "Remember: Olga likes tea.", True),
        ("Olga likes tea", "Olga likes tea ceremonies", False),
        ("Ana manages Bob", "Bob manages Ana", False),
        ("Alert above > 200 ms", "Alert above < 200 ms", False),
        ("The balance is -500 euros", "The balance is 500 euros", False),
        ("Olga programs in C", "Olga programs in C++", False),
        ("The door code is known", "The door code is k n o w n", True),
        ("The door code is known", "The door code is k.n.o.w.n to Bob", True),
        ("The door code is known", "The door code is u n k n o w n", False),
        ("Plan A B is ready", "Plan A B is ready now", True),
    ],
)
def test_repeats_are_recognised(removed, line, is_repeat):
    assert bool(Repeats([removed]).found_in(line)) == is_repeat


def pairs():
    return [
        ("Deploys need approval", "Deploys need approval from Rui"),
        (WRONG, f"{WRONG} until March"),
        ("Ana manages Bob", "Bob manages Ana"),
        ("The balance is -500 euros", "The balance is 500 euros"),
        ("Olga programs in C", "Olga programs in C#"),
    ]


@pytest.mark.parametrize(("was", "now"), pairs())
def test_a_fact_whose_correction_keeps_its_words_is_held(atlas, was, now):
    save(f"{TEXT}- {was}\n", 0)
    save(f"{TEXT}- {now}\n", 1)

    assert append_fact(document(), was, by=by(AGENT)).held
    assert append_fact(document(), now, by=by(AGENT)).revision is None  # it is there
    assert append_fact(document(), f"{now} on Fridays", by=by(AGENT)).revision


def test_a_held_row_does_not_say_that_a_removed_fact_is_true(removed):
    observe(removed, AGENT, WRONG)

    assert append_fact(document(), WRONG, by=by(AGENT)).held


def test_a_tag_a_source_or_a_key_that_says_it_is_held(removed):
    add_knowledge(removed, "See the tag", category="learned_fact", tags=[WRONG, "shop"], by=by(AGENT))
    store(removed, [NewObservation("finding", "See the source", source=WRONG)], by=by(AGENT))
    write_value(removed, WRONG.lower().replace(" ", "_"), "yes", by=by(AGENT))

    assert sorted(row.findings[0]["field"] for row in HeldRow.objects.all()) == ["key", "source", "tags"]


def test_a_refused_proposal_is_held_as_a_row_and_as_a_fact(atlas):
    propose_text(document(), f"{TEXT}- {WRONG}\n", base_number=None, reason="", by=by(AGENT, 0))
    reject(HeldChange.objects.get(), by=by(PERSON, 1), reason="wrong")

    learn(atlas, AGENT, WRONG)

    assert HeldRow.objects.get().findings[0]["code"] == "removed"
    assert append_fact(document(), WRONG, by=by(AGENT)).held


def test_a_removed_fact_that_is_wrapped_or_added_in_parts_is_held(removed, file):
    write(file, f"{file.read_text()}- The shop\n  is closed\n  on Monday\n", DAY)
    sync(removed, DAY + 1)
    assert "closed" not in head()

    append_fact(document(), "The shop is", by=by(AGENT))

    assert append_fact(document(), "closed on Monday", by=by(AGENT)).held


WRAPPED = [
    "\n".join(WRONG.split()),
    "- " + "\n- ".join(WRONG.split()),
    "".join(f"{number}. {word}\n" for number, word in enumerate(WRONG.split(), 1)),
    "1. The shop is\n2. closed on Monday",
    "## The shop is\n\n- closed on Monday",
    "- The shop is\n\n  closed on\n\n  Monday, says the baker",
    "The baker called. The\nshop\nis\nclosed\non\nMonday. She isn't sure",
]


@pytest.mark.parametrize("text", WRAPPED)
def test_a_removed_fact_is_held_over_any_number_of_lines(removed, text):
    written = write_text(
        document(), f"{head()}\n{text}\n", base_number=document().head.number, by=by(AGENT), reason=""
    )

    assert written.held


@pytest.mark.parametrize("text", [text for text in WRAPPED if "baker" not in text])
def test_a_row_that_says_it_over_several_lines_is_held(removed, text):
    learn(removed, AGENT, text)

    assert HeldRow.objects.get().findings[0]["code"] == "removed"


@pytest.mark.parametrize(
    "text",
    [
        "- The\n- shop\n- is\n- closed\n- on\n- Sunday",
        "- The\n- shop\n- isn't\n- closed\n- on\n- Monday",
        "- The\n- shop\n- is\n- open\n- not\n- closed\n- on\n- Monday",
        "- Monday\n- Sunday\n- the\n- shop",
    ],
)
def test_other_words_over_several_lines_are_written(removed, text):
    written = write_text(
        document(), f"{head()}\n{text}\n", base_number=document().head.number, by=by(AGENT), reason=""
    )

    assert written.revision


@pytest.mark.slow
def test_a_correction_is_known_however_many_follow(atlas):
    save(f"{TEXT}- {WRONG}\n", 0)
    save(f"{TEXT}- The shop is open on Monday\n", 1)
    for number in range(101):
        save(f"{TEXT}- The shop is open on Monday\n- note {number}\n", 2)

    assert append_fact(document(), WRONG, by=by(AGENT)).held


def test_a_proposal_that_the_agent_replaced_was_not_refused(atlas):
    entry = add_knowledge(atlas, "The shop opens at nine", category="learned_fact", by=by(PERSON, 0)).entry
    for text in (WRONG, "The shop is closed on Sunday"):
        change_entry_as_agent(entry, {"content": text}, by=by(AGENT, 1))

    observe(atlas, AGENT, WRONG)
    assert not HeldRow.objects.exists()

    cancel_run(Run.objects.get(status="held"), by=by(PERSON, 2))
    observe(atlas, AGENT, "The shop is closed on Sunday")
    assert HeldRow.objects.exists()


@pytest.mark.slow
@pytest.mark.postgres
def test_a_refused_text_is_known_however_many_proposals_the_agent_replaces(atlas):
    entry = add_knowledge(atlas, "The shop opens at nine", category="learned_fact", by=by(PERSON, 0)).entry
    change_entry_as_agent(entry, {"content": WRONG}, by=by(AGENT, 1))
    cancel_run(Run.objects.get(status="held"), by=by(PERSON, 2))
    for number in range(102):
        change_entry_as_agent(entry, {"content": f"The shop sells {number} cakes"}, by=by(AGENT, 3))

    observe(atlas, AGENT, WRONG)

    assert HeldRow.objects.get().findings[0]["code"] == "removed"


@pytest.mark.slow
@pytest.mark.postgres
def test_a_refused_line_is_known_however_many_refusals_follow(atlas):
    for line in (WRONG, *(f"The shop sells {number} cakes" for number in range(102))):
        propose_text(document(), f"{TEXT}- {line}\n", base_number=None, reason="", by=by(AGENT, 0))
        reject(HeldChange.objects.get(status="pending"), by=by(PERSON, 1), reason="wrong")

    assert append_fact(document(), WRONG, by=by(AGENT)).held


@pytest.mark.parametrize("values", [{"source": WRONG}, {"tags": ["shop", WRONG]}])
def test_a_source_or_tag_that_says_it_is_proposed_and_the_entry_stays_in_use(removed, values):
    entry = add_knowledge(removed, "The baker is open", category="learned_fact", by=by(AGENT)).entry

    waiting = change_entry_as_agent(entry, values, by=by(AGENT, DAY + 1))

    assert waiting
    assert [one["code"] for one in waiting.findings] == ["removed"]
    assert not HeldRow.objects.exists()
    assert (KnowledgeEntry.objects.get().source, KnowledgeEntry.objects.get().tags) == ("", [])


@pytest.mark.parametrize("values", [{"source": "the baker"}, {"tags": ["bakery"]}])
def test_a_harmless_change_holds_no_approved_entry_that_says_it(removed, values):
    entry = add_knowledge(removed, WRONG, category="learned_fact", by=by(AGENT)).entry
    approve_row(HeldRow.objects.get(), by=by(PERSON, DAY + 1))

    assert change_entry_as_agent(entry, values, by=by(AGENT, DAY + 2)) is None

    assert not HeldRow.objects.exists()
