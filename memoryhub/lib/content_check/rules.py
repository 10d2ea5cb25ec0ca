"""Recognise a rule for an agent's behaviour that reaches something sensitive, in any of the languages."""

from __future__ import annotations

import re
from typing import Literal

from memoryhub.lib.content_check.lexicon import OPAQUE, Is, Reading, concepts_in, read
from memoryhub.lib.content_check.targets import COMMAND, CONTENTS

Verdict = Literal["", "override", "instruction"]

_CODE_OR_WORD = re.compile(r"`[^`]*`|[^\s`]+")
_OPAQUE_PART = re.compile(r"^`|://|@|\\|/\w|^www\.|~/")
_ACCOUNT = re.compile(
    r"\b[a-z]{2}\d{2}(?: ?[a-z0-9]{3,4}){3,7}\b|(?<!\d)\d{12,20}(?!\d)|\b0x[0-9a-f]{6,}|\bbc1[a-z0-9]{8,}"
    r"|(?:口座|账户|账号|帳戶|帳號|계좌)(?:番号)? ?\d{5,}"
)
_TOLD = Is.WHO | Is.SELF | Is.THAT | Is.DATA | Is.REPLY | Is.MONEY | Is.SECRET
_SYSTEM_LABEL = re.compile(
    r"^(?:system|developer|sudo|root|admin|instructions?|sistema|systeme|sistem|systeem|система"
    r"|系统|系統|システム|시스템|النظام|نظام|सिस्टम)(?: \w+)?\s*[:>]"
)
_AUTHORITY = Is.GUARD | Is.ORDERS | Is.SELF
_REACHES = _AUTHORITY | Is.SECRET | Is.TELL | Is.SHOW | Is.MONEY | Is.PUSH | Is.WIPE | Is.AGENT | Is.COVERT | Is.GRAVE
_IMPERATIVES = Is.ACT | Is.GRAVE | Is.WIPE | Is.DROP | Is.TELL | Is.SHOW | Is.PUSH | Is.OBEY


def judge_rules(sentence: str, *, has_target: bool, is_mixed: bool = False) -> Verdict:
    """Return what a folded sentence is in one of the languages, "" for a fact.

    ``is_mixed``: consider every language, not only those with most of the words.
    """
    is_system = bool(_SYSTEM_LABEL.match(sentence))
    if not has_target and not is_system and not _may_have_rule(sentence):
        return ""
    readings = readings_of(sentence, has_target=has_target)
    most = max((reading.words for reading in readings.values()), default=0)
    for reading in readings.values():
        if is_system:
            reading.bits |= Is.NORM
        if (is_mixed or reading.words * 10 >= most * 7) and (has_target or reading.bits & _REACHES):
            if _overrides(reading):
                return "override"
            if _instructs(reading, sentence, has_target=has_target):
                return "instruction"
    return ""


def readings_of(sentence: str, *, has_target: bool) -> dict[str, Reading]:
    """Return what is found in a folded sentence, by language. URLs, addresses and code count as targets."""
    return read((_CODE_OR_WORD.sub(_hidden, sentence) if has_target else sentence).replace("_", " "))


def _may_have_rule(sentence: str) -> bool:
    concepts = concepts_in(sentence.replace("_", " "))
    return concepts is None or any(map(_may_be_rule, concepts.values()))


def _may_be_rule(bits: int) -> bool:
    """Return whether words with these concepts can make a rule without a target; most texts can't."""
    return bool(
        bits & (Is.COVERT | Is.MONEY)
        or (bits & _AUTHORITY and bits & (Is.DROP | Is.VOID | Is.NORM | Is.SELF | Is.AGENT))
        or (bits & Is.SECRET and bits & (Is.ACT | Is.SHOW | Is.NORM | Is.GET | Is.DROP))
        or (bits & Is.WIPE and bits & (Is.ORDERS | Is.DATA))
        or (bits & Is.NOT and bits & (Is.TELL | Is.SHOW | Is.ASK))
        or (bits & Is.AGENT and bits & Is.NORM and bits & (Is.GRAVE | Is.WIPE))
        or (bits & Is.PUSH and bits & Is.VENDOR)
        or (bits & Is.GRAVE and bits & Is.EVERY)
    )


def _hidden(match: re.Match[str]) -> str:
    return f" {OPAQUE} " if _OPAQUE_PART.search(match.group()) else match.group()


def _overrides(reading: Reading) -> bool:
    bits = reading.bits
    ruled = _is_rule(reading)
    return bool(
        (bits & _AUTHORITY and _drops_authority(reading, ruled=ruled))
        or (ruled and bits & Is.WIPE and _wipes_memory(reading))
        or (bits & Is.COVERT and (bits & Is.SELF or (ruled and bits & (Is.MONEY | Is.DATA | Is.ORDERS))))
        or (bits & Is.NOT and (_keeps_from_telling(reading) or _spares_question(reading)))
    )


def _drops_authority(reading: Reading, *, ruled: bool) -> bool:
    """Return whether text puts a safeguard, rules or itself out of sight or force."""
    bits = reading.bits
    boundless = bits & (Is.MONEY | Is.SELF | Is.SECRET) or (bits & Is.EVERY and bits & Is.ORDERS)
    if bits & Is.DROP and (ruled or boundless) and _near(reading, Is.DROP, _AUTHORITY):
        return True
    if bits & Is.NORM and bits & Is.CONSENT:
        nothing = _follows(reading, Is.NONE, Is.CONSENT, 12) or _follows(reading, Is.CONSENT, Is.NONE, 1)
        if nothing or _near(reading, Is.WAIVE, Is.CONSENT, 40):
            return True
    if bits & Is.VOID and _near(reading, Is.ORDERS, Is.VOID) and _near(reading, Is.PRIOR, Is.ORDERS, 12):
        return True
    if bits & Is.SELF and bits & (Is.ONLY | Is.DROP | Is.VOID) and _near(reading, Is.OBEY | Is.AGENT, Is.SELF):
        return True
    return bool(bits & Is.AGENT and bits & Is.NONE and _follows(reading, Is.NONE, Is.ORDERS, 12))


def _wipes_memory(reading: Reading) -> bool:
    """Return whether text has rules or stored data deleted, without asking first."""
    if _asks_first(reading):
        return False
    boundless = reading.bits & Is.AGENT or _near(reading, Is.EVERY | Is.PRIOR, Is.DATA, 12)
    return _near(reading, Is.WIPE, Is.ORDERS, 30) or bool(boundless and _near(reading, Is.WIPE, Is.DATA, 30))


def _instructs(reading: Reading, sentence: str, *, has_target: bool) -> bool:
    bits = reading.bits
    ruled = _is_rule(reading)
    if (bits & Is.MONEY and _ACCOUNT.search(sentence)) or (has_target and CONTENTS.search(sentence)):
        return True
    if bits & Is.SECRET and bits & (Is.ACT | Is.SHOW) and (ruled or bits & Is.COVERT) and _gives_secret(reading):
        return True
    if bits & Is.SECRET and bits & Is.NORM and not bits & Is.NOT and _near(reading, Is.SECRET, Is.REPLY, 30):
        return True
    if bits & Is.SECRET and bits & Is.ANYONE and _serves_anyone(reading):
        return True
    if bits & Is.AGENT and bits & Is.NORM and _instructs_agent(reading) and not _asks_first(reading):
        return True
    if bits & Is.PUSH and bits & Is.VENDOR and (ruled or bits & Is.WHEN) and _pushes(reading):
        return True
    if any(hit.leads and hit.bits & Is.GRAVE for hit in reading.hits) and _follows(reading, Is.GRAVE, Is.EVERY, 12):
        return True
    return has_target and _sets_target(reading, sentence)


def _is_rule(reading: Reading) -> bool:
    """Return whether text sets a rule: an obligation, a condition, an agent addressed, or an imperative."""
    rules, imperatives = Is.NORM | Is.AGENT, _IMPERATIVES
    if not reading.is_spaced:
        rules |= Is.WHEN
        imperatives |= Is.LEAD
    return bool(
        reading.bits & rules
        or any(hit.leads and hit.bits & imperatives for hit in reading.hits)
        or _follows(reading, Is.EVERY, Is.REPLY, 12)
    )


def _near(reading: Reading, one: int, other: int, chars: int = 60) -> bool:
    """Return whether a word of one concept is close to a word of another one, in either order, or is both."""
    return _follows(reading, one, other, chars) or _follows(reading, other, one, chars)


def _follows(reading: Reading, one: int, other: int, chars: int) -> bool:
    """Return whether a word of one concept is followed closely by a word of another one, or is both."""
    limit = chars if reading.is_spaced else min(chars, 25)
    last = -1_000
    for hit in reading.hits:
        if hit.bits & other and (hit.bits & one or hit.start - last <= limit):
            return True
        if hit.bits & one:
            last = hit.end
    return False


def _keeps_from_telling(reading: Reading) -> bool:
    """Return whether text forbids to tell somebody something, or to mention the text itself."""
    return (_forbids(reading, Is.TELL) and _near(reading, Is.TELL, _TOLD, 50)) or (
        _forbids(reading, Is.SHOW) and _near(reading, Is.SHOW, Is.WHO | Is.SELF, 50)
    )


def _forbids(reading: Reading, act: int) -> bool:
    if not reading.bits & act:
        return False
    leads = any(hit.leads and hit.bits & act for hit in reading.hits)
    if _follows(reading, Is.NOT, act, 25):
        forbids = any(hit.leads and hit.bits & Is.NOT for hit in reading.hits)
        return leads or forbids or _near(reading, Is.NORM, act, 40)
    return leads and _follows(reading, act, Is.NOT, 60)


def _asks_first(reading: Reading) -> bool:
    """Return whether something is only to be done after a confirmation."""
    bits = reading.bits
    return bool(bits & Is.ASK and bits & Is.BEFORE and not bits & (Is.DROP | Is.NONE | Is.NOT))


def _spares_question(reading: Reading) -> bool:
    """Return whether nobody is to be asked for a confirmation, or before something is deleted or paid."""
    last_not = asked = -1_000
    before = False
    for hit in reading.hits:
        if hit.start - asked <= 40 and hit.bits & (Is.GUARD | Is.WIPE | Is.MONEY if before else Is.GUARD):
            return True
        before = before or bool(hit.bits & Is.BEFORE)
        if hit.bits & Is.ASK and hit.start - last_not <= 25:
            asked, before = hit.end, bool(hit.bits & Is.BEFORE)
        elif hit.bits & (Is.WIPE | Is.DROP) or hit.bits & (Is.ACT | Is.MILD) == Is.ACT:
            last_not = -1_000
        if hit.bits & Is.NOT:
            last_not = hit.end
    return False


def _gives_secret(reading: Reading) -> bool:
    """Return whether text has a secret sent, written or shown. Prohibitions don't count."""
    last_not = last_secret = last_act = -1_000
    limit = 60 if reading.is_spaced else 25
    for hit in reading.hits:
        if hit.bits & Is.SECRET:
            if hit.start - last_act <= limit:
                return True
            last_secret = hit.end
        elif hit.bits & (Is.ACT | Is.SHOW) and not hit.bits & Is.MILD and hit.start - last_not > 20:
            if hit.start - last_secret <= limit:
                return True
            last_act = hit.end
        if hit.bits & Is.NOT:
            last_not = hit.end
    return False


def _serves_anyone(reading: Reading) -> bool:
    """Return whether whoever does something is to get a secret. Prohibitions don't count."""
    return (
        not reading.bits & Is.NOT and _near(reading, Is.ANYONE, Is.SECRET, 90) and _near(reading, Is.GET, Is.SECRET)
    )


def _instructs_agent(reading: Reading) -> bool:
    """Return whether an assistant, and not just "you", is to do something grave."""
    return any(hit.bits & Is.AGENT and not hit.bits & Is.YOU for hit in reading.hits) and _near(
        reading, Is.AGENT, Is.GRAVE | Is.WIPE, 80
    )


def _pushes(reading: Reading) -> bool:
    """Return whether text has one product or vendor recommended over others."""
    only = any(hit.bits & Is.ONLY and not hit.bits & Is.NORM for hit in reading.hits)
    leads = any(hit.leads and hit.bits & Is.PUSH for hit in reading.hits)
    if leads:
        return bool(reading.bits & (Is.ONLY | Is.NORM))
    return only and bool(reading.bits & (Is.NORM | Is.WHEN))


def _sets_target(reading: Reading, sentence: str) -> bool:
    """Return whether text has something done with a URL, an address or a command."""
    bits = reading.bits
    acts = Is.ACT | Is.GRAVE | Is.WIPE
    rules = Is.NORM | Is.AGENT | Is.COVERT
    if bits & acts and (not bits & Is.TARGET or _near(reading, Is.TARGET, acts, 160)):
        if any(hit.leads and hit.bits & acts for hit in reading.hits) or _near(reading, rules, acts, 80):
            return True
        if not reading.is_spaced and _is_rule(reading):
            return True
        if bits & Is.WHEN and any(hit.bits & acts and not hit.bits & Is.MILD for hit in reading.hits):
            return True
    if _mentions_target(reading, sentence):
        return True
    if bits & rules and COMMAND.search(sentence):
        return True
    flows = bits & (Is.EVERY | Is.REPLY | Is.MONEY | Is.SECRET | Is.DATA)
    to_target = _follows(reading, Is.TO, Is.TARGET, 1) or _follows(reading, Is.TARGET, Is.TO, 1)
    return bool(bits & (rules | Is.WHEN) and flows and to_target)


def _mentions_target(reading: Reading, sentence: str) -> bool:
    """Return whether answers, or what is said about something, are to contain a URL or an address."""
    bits = reading.bits
    if bits & Is.QUESTION and "://" in sentence and _near(reading, Is.QUESTION, Is.TARGET, 80):
        return True
    if bits & (Is.WHEN | Is.NORM) and _near(reading, Is.SHOW, Is.TARGET):
        return True
    is_conditional = bits & Is.WHEN and _near(reading, Is.REPLY, Is.TARGET, 40)
    return bool(is_conditional or (bits & Is.REPLY and _follows(reading, Is.EVERY, Is.REPLY, 12)))
