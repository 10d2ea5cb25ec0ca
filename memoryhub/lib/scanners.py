"""Secrets, personal data and orders in a text: what they are, and where. Pure.

The known shapes of secrets are those of detect-secrets' patterns and our own. Its keyword and entropy detectors are
left out: they take "Prefers TypeScript" for a secret. Personal data is what can be checked: e-mail addresses, phone
numbers with a country code, bank accounts and cards whose check digits are right.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector
from phonenumbers import Leniency, PhoneNumberMatcher
from stdnum import iban, luhn

from memoryhub.lib.secrets import find_secrets, names_secret
from memoryhub.lib.text.change_guard import INVISIBLE, is_order

SECRET, PERSONAL, ORDER = "secret", "personal", "order"
MASK = "•••"
SHAPE = "text with the shape of a key"
NAMED = "a secret by its name"


@dataclass(frozen=True)
class Match:
    """Something found in a text: secret, personal or order; what it is in words; characters [start, end)."""

    kind: str
    what: str
    start: int
    end: int


@dataclass(frozen=True)
class _Detector:
    """One of detect-secrets' patterns: what it finds, and what a text must hold (lower case) for it to be asked."""

    plugin: RegexBasedDetector
    what: str
    hints: tuple[str, ...]
    has_digits: bool = False  # its pattern is so wide that words fit it


_DETECTORS = [
    _Detector(AWSKeyDetector(), "an AWS key", ("akia", "asia", "abia", "acca", "a3t", "aws")),
    _Detector(GitHubTokenDetector(), "a GitHub token", ("gho_", "ghp_", "ghr_", "ghs_", "ghu_")),
    _Detector(
        GitLabTokenDetector(),
        "a GitLab token",
        (
            "glpat-",
            "gldt-",
            "glft-",
            "glsoat-",
            "glrt-",
            "gr1348941",
            "glcbt-",
            "glimt-",
            "glptt-",
            "glagent-",
            "gloas-",
        ),
    ),
    _Detector(SlackDetector(), "a Slack token", ("xox", "hooks.slack.com")),
    _Detector(StripeDetector(), "a Stripe key", ("k_live_",)),
    _Detector(OpenAIDetector(), "an OpenAI key", ("t3blbkfj",)),
    _Detector(JwtTokenDetector(), "a JSON web token", ("eyj",)),
    _Detector(PrivateKeyDetector(), "a private key", ("private key", "putty-user-key")),
    _Detector(BasicAuthDetector(), "a password in an address", ("://",)),
    _Detector(TwilioKeyDetector(), "a Twilio key", ("ac", "sk"), has_digits=True),
    _Detector(SendGridDetector(), "a SendGrid key", ("sg.",)),
    _Detector(NpmDetector(), "an npm token", ("_authtoken",)),
    _Detector(PypiTokenDetector(), "a PyPI token", ("pypi-",)),
    _Detector(AzureStorageKeyDetector(), "an Azure storage key", ("accountkey=",)),
    _Detector(DiscordBotTokenDetector(), "a Discord bot token", (".",)),
    _Detector(MailchimpDetector(), "a Mailchimp key", ("-us",)),
    _Detector(TelegramBotTokenDetector(), "a Telegram bot token", (":",)),
    _Detector(SquareOAuthDetector(), "a Square secret", ("sq0csp-",)),
    _Detector(ArtifactoryDetector(), "an Artifactory credential", ("akc", "ap"), has_digits=True),
    _Detector(CloudantDetector(), "a Cloudant credential", ("cl",), has_digits=True),
    _Detector(IbmCloudIamDetector(), "an IBM Cloud key", ("key", "pwd", "pass", "token"), has_digits=True),
    _Detector(SoftlayerDetector(), "a SoftLayer credential", ("sl", "softlayer"), has_digits=True),
]
_PIECE = 2_000  # characters that patterns see at once: some take their time over a longer line
_OVERLAP = 400
_MAYBE_SECRET = re.compile(r"[^\s]{12}|[=:]|passw|secret|private key", re.IGNORECASE)
_TOKEN = re.compile(r"[\w+/=~.-]*(?<![.-])")  # the rest of a token whose beginning a pattern found
_PEM_END = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|Private-MAC: \w+")
_SAID = re.compile(
    r"\b(?:(?:password|passphrase|passwd|pwd)(?: (?:is|was|=)|:|=) ?[\"'`]?(?=\S*\d)(?=\S*[A-Za-z])([^\s\"'`]{6,64})"
    r"|(?:api[ _-]?key|secret(?: key)?|(?:access|auth|bearer) token)(?: (?:is|was|=)|:|=) ?[\"'`]?"
    r"(?=\S*\d)(?=\S*[A-Za-z])([^\s\"'`]{16,200}))",
    re.IGNORECASE,
)
_HARMLESS = re.compile(  # placeholders, references to where a secret is kept, and keys of sessions
    r"[<{$%*•\[(].*|x{3,}\w*|\.{3}.*|(?:redacted|masked|hidden|changeme|change-me|your[_-].*|none|null)\W*"
    r"|(?:os\.environ|process\.env|env|getenv|settings|config|self)[.\[(:].*|[a-z]{2,16}:[\w@.+-]{1,40}|https?://.*",
    re.IGNORECASE | re.DOTALL,
)
_DIGEST = re.compile(
    r"(?:sha-?\d+|digest|checksum|hash|commit|revision|fingerprint|integrity)\W{0,3}$", re.IGNORECASE
)
_HEX = re.compile(r"[0-9a-fA-F]+")
_EMAIL = re.compile(
    r"(?<![\w.+%/@-])[\w.+%-]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w@-]|\.\w|:\w)"
)
_NO_PERSON = re.compile(
    r"(?:git|noreply|no-reply|donotreply|do-not-reply)@|.*\.(?:png|jpe?g|gif|svg|webp|js|css|py)$", re.I
)
_PHONE = re.compile(r"(?<![\w+])[+＋]\W?\d")
_PHONE_CHARS = 40
_DIGITS = re.compile(r"\d{2}[A-Z0-9 -]{10}")
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{1,4}){3,8}(?!\w)")
_CARD = re.compile(
    r"(?<![\w.,+-])(?:(?:4\d{3}|5[1-5]\d{2}|2[2-7]\d{2}|6(?:011|2\d{2}|5\d{2})|35\d{2})([ -]?)\d{4}\1\d{4}\1\d{4}"
    r"|3[47]\d{2}([ -]?)\d{6}\2\d{5}|3(?:0[0-5]|[68]\d)\d([ -]?)\d{6}\3\d{4})(?![\w-]|[.,]\d)"
)
_JOINED = re.compile(  # invisible characters that scripts and emoji are written with
    "(?<=[\u0600-\u06ff\u0900-\u0dff])[\u200c\u200d](?=[\u0600-\u06ff\u0900-\u0dff])"
    "|(?<=[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff])\u200d(?=[\u2600-\u27bf\U0001f000-\U0001faff])"
    "|(?<=[^\\W\\d_])\u00ad(?=[^\\W\\d_])"
)


def scan_text(text: str) -> list[Match]:
    """Return the secrets and personal data of a text in order, none overlapping; a secret goes before the other.

    10,000 rows of a sentence each take about a second.
    """
    found = list(_secrets(text)) if _MAYBE_SECRET.search(text) else []
    return _apart([*found, *_personal(text)])


def scan_value(name: str, value: str) -> list[Match]:
    """Return the secrets and personal data of a value; all of it where its name says that it is a secret."""
    found = scan_text(value)
    if value.strip() and names_secret(name, value) and not _HARMLESS.fullmatch(value.strip()):
        what = next((match.what for match in found if match.kind == SECRET), NAMED)
        return [Match(SECRET, what, 0, len(value))]
    return found


def scan_orders(text: str) -> list[Match]:
    """Return the lines of a text that read like orders to a model, and the invisible characters in it."""
    found = []
    at = 0
    for line in text.split("\n"):
        if is_order(line):
            found.append(Match(ORDER, "text that reads like an order to a model", at, at + len(line)))
        at += len(line) + 1
    hidden = INVISIBLE.search(text)
    if hidden and (hidden := INVISIBLE.search(_JOINED.sub(" ", text))):
        found.append(Match(ORDER, "invisible characters", hidden.start(), hidden.end()))
    return found


def in_words(matches: Iterable[Match]) -> str:
    """Return what was found as one phrase without any of it, each thing once: "an AWS key and 2 phone numbers"."""
    counts: dict[str, int] = {}
    for match in matches:
        counts[match.what] = counts.get(match.what, 0) + 1
    words = [what if count == 1 else _many(what, count) for what, count in counts.items()]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _many(what: str, count: int) -> str:
    if what.startswith(("text ", "invisible ")):
        return what
    plain = what.split(" ", 1)[1]
    return f"{count} × {plain}"


def mask_secrets(text: str, matches: Iterable[Match] | None = None) -> str:
    """Return a text with ••• in the place of each secret."""
    found = scan_text(text) if matches is None else matches
    for match in sorted(found, key=lambda match: match.start, reverse=True):
        if match.kind == SECRET:
            text = text[: match.start] + MASK + text[match.end :]
    return text


def _apart(matches: list[Match]) -> list[Match]:
    """Join secrets that overlap, under the name of the first that is more than a shape; leave out what they touch."""
    kept: list[Match] = []
    for match in sorted((match for match in matches if match.kind == SECRET), key=lambda match: match.start):
        if kept and match.start < kept[-1].end:
            what = match.what if kept[-1].what == SHAPE else kept[-1].what
            kept[-1] = replace(kept[-1], what=what, end=max(kept[-1].end, match.end))
        else:
            kept.append(match)
    secrets = len(kept)
    for match in sorted((match for match in matches if match.kind != SECRET), key=lambda match: match.start):
        place = bisect_left(kept, match.end, hi=secrets, key=lambda other: other.start)
        is_free = place == 0 or kept[place - 1].end <= match.start
        if is_free and (len(kept) == secrets or kept[-1].end <= match.start):
            kept.append(match)
    return sorted(kept, key=lambda match: match.start)


def _secrets(text: str) -> Iterator[Match]:
    yield from _of_known_shape(text)
    for said in _SAID.finditer(text):
        group = said.lastindex or 0
        if not _HARMLESS.fullmatch(said[group]):
            yield Match(SECRET, "a password or key", said.start(group), said.end(group))
    covered = 0
    for start, end, is_named in find_secrets(text):
        if start >= covered and _counts(text, start, end, is_named=is_named):
            covered = _end_of_key(text, end) if text[start:end].endswith("PRIVATE KEY-----") else end
            yield Match(SECRET, NAMED if is_named else SHAPE, start, covered)
            covered = 0 if is_named else covered


def _of_known_shape(text: str) -> Iterator[Match]:
    covered = dict.fromkeys(range(len(_DETECTORS)), 0)
    for start, piece in _pieces(text):
        lower = piece.lower()
        for place, detector in enumerate(_DETECTORS):
            if not any(hint in lower for hint in detector.hints):
                continue
            for found_at, found_end in _found_by(detector, piece):
                if start + found_at >= covered[place]:
                    covered[place] = _end_of(text, start + found_end, detector)
                    yield Match(SECRET, detector.what, start + found_at, covered[place])


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    for start in range(0, max(1, len(text) - _OVERLAP), _PIECE - _OVERLAP):
        yield start, text[start : start + _PIECE]


def _found_by(detector: _Detector, piece: str) -> Iterator[tuple[int, int]]:
    """Yield where a detector finds something: the whole of what its pattern fits, not only the part that it names."""
    if next(iter(detector.plugin.analyze_string(piece)), None) is None:
        return
    for pattern in detector.plugin.denylist:
        for found in pattern.finditer(piece):
            text = found.group()
            before = piece[found.start() - 1 : found.start()] if found.start() else ""
            if text[:1].isalnum() and before.isalnum():
                continue  # the middle of something longer
            if detector.has_digits and not any(letter.isdigit() for letter in text):
                continue
            if next(iter(detector.plugin.analyze_string(text)), None) is not None:
                yield found.span()


def _end_of(text: str, end: int, detector: _Detector) -> int:
    """Return where a secret ends whose beginning a pattern found: its token, or the end of a private key."""
    if isinstance(detector.plugin, PrivateKeyDetector):
        return _end_of_key(text, end)
    token = _TOKEN.match(text, end)
    return token.end() if token else end


def _end_of_key(text: str, end: int) -> int:
    closing = _PEM_END.search(text, end)
    return closing.end() if closing else len(text)


def _counts(text: str, start: int, end: int, *, is_named: bool) -> bool:
    """Tell whether something that pages mask to be safe is worth a person's attention."""
    value = text[start:end]
    if is_named:
        return not _HARMLESS.fullmatch(value)
    if _HEX.fullmatch(value):
        return not _DIGEST.search(text, max(0, start - 40), start)
    return not value.isalnum() or _is_mixed(value)


def _is_mixed(value: str) -> bool:
    """Tell random letters and digits from words written together, whose kinds change at fewer places."""
    kinds = ["0" if letter.isdigit() else "A" if letter.isupper() else "a" for letter in value]
    changes = sum(one != other for one, other in pairwise(kinds)) / len(kinds)
    return changes >= 0.45 or (changes >= 1 / 3 and kinds.count("0") >= 3)


def _personal(text: str) -> Iterator[Match]:
    if "@" in text:
        yield from _matches(text, _EMAIL, "an e-mail address", lambda found: not _NO_PERSON.match(found.group()))
    if "+" in text or "＋" in text:
        yield from _phones(text)
    if len(text) >= 14 and _DIGITS.search(text):
        yield from _ibans(text)
        yield from _matches(
            text, _CARD, "a card number", lambda found: luhn.is_valid(re.sub(r"\D", "", found.group()))
        )


def _matches(
    text: str, pattern: re.Pattern[str], what: str, is_real: Callable[[re.Match[str]], bool]
) -> Iterator[Match]:
    for found in pattern.finditer(text):
        if is_real(found):
            yield Match(PERSONAL, what, found.start(), found.end())


def _phones(text: str) -> Iterator[Match]:
    """Yield numbers with a country code; without one, any count could be somebody's number somewhere."""
    for plus in _PHONE.finditer(text):
        near = PhoneNumberMatcher(text[plus.start() : plus.start() + _PHONE_CHARS], None, Leniency.VALID, 1)
        for found in near:
            if found.start == 0:
                yield Match(PERSONAL, "a phone number", plus.start(), plus.start() + found.end)


def _ibans(text: str) -> Iterator[Match]:
    """Yield bank accounts; words in capitals behind one are cut off until its check digits are right."""
    for found in _IBAN.finditer(text):
        value = found.group()
        while value and not iban.is_valid(value):
            value = value.rpartition(" ")[0]
        if value:
            yield Match(PERSONAL, "a bank account", found.start(), found.start() + len(value))
