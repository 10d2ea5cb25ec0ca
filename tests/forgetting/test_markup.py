"""A name is forgotten also where HTML tags, emphasis or links of Markdown split it."""

from __future__ import annotations

import json
import time

import pytest

from knowledge_app.models import MemoryDocument
from memoryhub.forgetting.matching import Redaction, digest_of, find_digests, find_phrases, phrase_of
from memoryhub.sync.importing import import_workspace
from tests.forgetting.test_forgetting import BY, forget, holding

NAME = phrase_of("Zelda Quorra")
KEY = b"k" * 32
SPLIT = [
    "Zelda <b>Quorra</b> sings",
    "<i>Zelda</i> <i>Quorra</i>",
    'Zelda <a class="x" title="a > b" href=\'http://a.b\'>Quorra</a>',
    "Zelda<br/>Quorra",
    "Zelda<BR>\nQuorra",
    "<td>Zelda</td><td>Quorra</td>",
    "Zelda<span>Quorra</span>",
    "Zelda <!-- born > here --> Quorra",
    "Z<b>elda</b> Quo<!-- x -->rra",
    "Zel<b>da</b><br>Qu<i>or</i>ra",
    "Zel**da** Qu*or*ra",
    "Zelda Quo~~rra~~",
    "Zelda `Quo`rra",
    "Z<b>**elda**</b> Quorra",
    "[Zelda](http://a.b) Quorra",
    '[**Zelda**](http://a.b/c_(d) "title") [Quorra](<x y>)',
    "[Zel](a)da Quorra",
    "Zel[da](a) Quorra",
    "[Zelda][1] Quorra",
    "![Zelda](a.png)![Quorra](b.png)",
    "Zelda[^note] Quorra",
    "[Zelda](a)[Quorra](b)",
    "Zelda&nbsp;<b>Quorra</b>",
    "Z&#101;lda <b>Quorra</b>",
    "Zelda \\u003cb\\u003eQuorra\\u003c/b\\u003e",
    json.dumps({"a": json.dumps('Zelda <b class="x">Quorra</b>')}),
    "Zelda\u200b<b>Quorra</b>",
    "Zelda &lt;b&gt;Quorra&lt;/b&gt;",
]
OTHERS = [
    "Zelda <b>and</b> Quorra",
    "Zelda a < b Quorra",
    "Zelda [knows](a) Quorra",
    "Zelda [b] Quorra",
    "Zelda (b) Quorra",
    "Zelda <b Quorra",
    "MyZelda<b>s</b> Quorra",
    "2 * 3 and Zelda`s Quorra",
]


@pytest.mark.parametrize("text", SPLIT)
def test_a_name_that_markup_splits_is_recognised(text):
    by_words, by_hash = find_phrases([NAME]), find_digests([digest_of(NAME, KEY)], KEY)

    assert by_words(text)
    assert by_hash(text) == by_words(text)
    assert Redaction(words=by_words).text(f"tea {text}").startswith("tea ")
    assert not Redaction(words=by_words).mentions(Redaction(words=by_words).text(text))


@pytest.mark.parametrize("text", OTHERS)
def test_other_words_are_kept(text):
    redaction = Redaction(words=find_digests([digest_of(NAME, KEY)], KEY))

    assert redaction.text(text) == text


@pytest.mark.parametrize(
    ("phrase", "text", "left"),
    [
        ("Quorra", "<b>Quo</b>rra sings", "<b>[forgotten] sings"),
        ("Quorra", "a **Quor**ra b", "a **[forgotten] b"),
        ("span", "no <span>tag</span>", "no <[forgotten]>tag</[forgotten]>"),
        ("田中", "田<b>中</b>さん", "[forgotten]</b>さん"),
    ],
)
def test_only_the_name_is_removed(phrase, text, left):
    assert Redaction(words=find_phrases([phrase_of(phrase)])).text(text) == left


PARTS = [
    "<",
    "<a ",
    "</",
    "<!--",
    "<!-- -",
    '<a "',
    "<a '\"",
    "[",
    "](",
    "](a(b",
    "](a](a)x",
    "][",
    "[^",
    "*a",
    "`~*",
    "<a>",
]


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_hostile_texts_take_linear_time(part):
    find = find_digests([digest_of(NAME, KEY)], KEY)

    def seconds(length: int) -> float:
        text = part * (length // len(part)) + " x"
        start = time.process_time()
        find(text)
        return time.process_time() - start

    few = min(seconds(10_000) for _ in range(3))
    assert seconds(100_000) < 40 * max(few, 0.005)


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["phrase", "person"])
def test_imports_do_not_bring_it_back(tmp_path, settings, kind):
    settings.MEMORYHUB_QUIET_SECONDS = 0
    (tmp_path / "memory").mkdir()
    memory = tmp_path / "memory" / "MEMORY.md"
    memory.write_text("# Memory\n\n- Zelda <b>Quorra</b> sings\n- Zel**da** [Quorra](a) dances\n- tea\n")
    workspace = import_workspace(tmp_path, by=BY).workspace

    forget(workspace, kind, "Zelda Quorra")
    assert holding("quorra") == set()

    memory.write_text(memory.read_text() + "- water\n")
    import_workspace(tmp_path, by=BY)

    assert holding("quorra") == set()
    head = MemoryDocument.objects.select_related("head").get().head
    assert head
    assert "- water" in head.content
