"""Recognise instructions in other languages than English."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Literal

from memoryhub.lib.content_check.idioms import RULE_LABEL
from memoryhub.lib.content_check.languages import LANGUAGES, LATIN_SCRIPTS, Language
from memoryhub.lib.content_check.normalising import MARKS
from memoryhub.lib.content_check.targets import COMMAND, URL

Pattern = re.Pattern[str]
Verdict = Literal["", "override", "instruction"]


@dataclass(frozen=True)
class _Lexicon:
    """The compiled words of a language."""

    obliges: Pattern
    acts: Pattern
    starts: Pattern  # a clause that begins with one of ``acts`` or ``overrides``
    overrides: Pattern  # ``overrides`` near ``authority``, in either order
    sensitive: Pattern  # authority or credential
    model: Pattern
    is_spaced: bool


_REPLIES = re.compile(
    r"(?:respond|contest|repon|antwort|rispond|antwoord|odpowi|ответ|отвеча|відповід|جب|رد|اجاب|जवाब|उत्तर|উত্তর"
    r"|回|答|返信|応|답|대답|응답|yan[ıi]t|cevap|jawab|balas|tra loi"
    r"|us|escrib|ecri|schreib|scriv|напиш|कर|كتاب|اكتب|di|decir|dire|dizer)"
)


def _folded(pattern: str) -> str:
    return unicodedata.normalize("NFC", MARKS.sub("", unicodedata.normalize("NFKD", pattern)))


@cache
def _lexicons(*, is_ascii: bool) -> list[_Lexicon]:
    """Return the lexicons of all languages, or of those that can be written in ASCII after folding."""
    every = {name: _compiled(language) for name, language in LANGUAGES.items()}
    return [lexicon for name, lexicon in every.items() if not is_ascii or name in LATIN_SCRIPTS]


@cache
def _any_subject(*, is_ascii: bool) -> Pattern:
    """Return a pattern of what an instruction can be about in any language. Text without it needs no further look."""
    parts = [
        part
        for lexicon in _lexicons(is_ascii=is_ascii)
        for part in (lexicon.sensitive.pattern, lexicon.model.pattern)
    ]
    return re.compile("|".join(parts))


def _compiled(language: Language) -> _Lexicon:
    left, right = (r"(?<!\w)", r"(?!\w)") if language.is_spaced else ("", "")
    if not language.is_spaced and not re.search("[\u3000-\u9fff\uac00-\ud7af]", language.acts):
        left = r"(?<![\w\u0900-\u09ff])(?:[وفبلس]?(?:ال)?)"  # these scripts have vowel signs, which \w doesn't match

    def words(*alternatives: str) -> str:
        return rf"{left}(?:{_folded('|'.join(alternatives))}){right}"

    near = ".{0,60}" if language.is_spaced else ".{0,25}"
    overrides, authority = words(language.overrides), words(language.authority)
    return _Lexicon(
        re.compile(words(language.obliges)),
        re.compile(words(language.acts, language.overrides)),
        re.compile(
            rf"(?:^|[,;:،、，：—–\"'“«]\s*|\s[-]\s|(?<!\w)(?:y|et|und|e|en|i|и|ve|dan|luego|puis|dann|poi"
            rf"|затем)\s+){words(language.acts, language.overrides)}"
        ),
        re.compile(rf"{overrides}{near}?{authority}|{authority}{near}?{overrides}"),
        re.compile(words(language.authority, language.credential)),
        re.compile(words(language.model)),
        language.is_spaced,
    )


def judge_in_other_languages(sentence: str, *, has_target: bool) -> Verdict:
    """Return what a folded sentence is in one of the languages, "" for a fact."""
    if not has_target and not _any_subject(is_ascii=sentence.isascii()).search(sentence):
        return ""
    verdicts = (
        _judge(lexicon, sentence, has_target=has_target) for lexicon in _lexicons(is_ascii=sentence.isascii())
    )
    return next((verdict for verdict in verdicts if verdict), "")


def is_obliging(sentence: str) -> bool:
    """Return whether a folded sentence has an obligation in one of the languages."""
    return any(lexicon.obliges.search(sentence) for lexicon in _lexicons(is_ascii=sentence.isascii()))


def _judge(lexicon: _Lexicon, sentence: str, *, has_target: bool) -> Verdict:
    obliged = bool(lexicon.obliges.search(sentence))
    starts = bool(lexicon.starts.search(sentence))
    model = bool(lexicon.model.search(sentence))
    body = RULE_LABEL.sub("", sentence)  # "Rule: without ..." puts no rule out of force
    if lexicon.overrides.search(body) and (obliged or starts or model or not lexicon.is_spaced):
        return "override"
    if not (obliged or starts):
        return ""
    act = lexicon.acts.search(sentence)
    if has_target and (starts or (obliged and (act or COMMAND.search(sentence) or URL.search(sentence)))):
        return "instruction"
    if act and lexicon.sensitive.search(body):
        return "instruction"
    if obliged and model and act and not _REPLIES.match(act.group().strip()):
        return "instruction"
    return ""
