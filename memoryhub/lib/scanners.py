"""Find secrets, personal data and instruction-like text, with their positions.

Secrets are found by detect-secrets' patterns and our own. Its keyword and entropy detectors are not used, because
they report phrases such as "Prefers TypeScript". Personal data is limited to what can be validated: e-mail
addresses, phone numbers with a country code, and IBANs and card numbers with correct check digits.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from stdnum import iban, luhn

from memoryhub.lib.content_check.check import check_text
from memoryhub.lib.secrets import find_secrets, names_secret

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector

SECRET, PERSONAL, ORDER = "secret", "personal", "order"
MASK = "•••"
SHAPE = "text with the shape of a key"
NAMED = "a secret by its name"
PRIVATE_KEY = "a private key"
INSTRUCTION_LIKE = "text that looks like an instruction to a model"
_WHAT = {
    "invisible": "invisible characters",
    "comment": "text in a comment that isn't displayed",
    "html": "text with HTML",
    "image": "text with an image",
    "link": "text with a link to another site",
}


@dataclass(frozen=True)
class Match:
    """A finding. ``kind``: secret, personal or order. ``what``: a description. It spans characters [start, end)."""

    kind: str
    what: str
    start: int
    end: int


@dataclass(frozen=True)
class _Detector:
    """A detect-secrets plugin. It runs only on texts that contain one of ``hints`` (lower case), for speed."""

    plugin: str  # its module and class
    what: str
    hints: tuple[str, ...]
    has_digits: bool = False  # ignore matches without digits: the pattern also matches ordinary words
    is_long: bool = False  # its matches contain LONG_KEY, which most texts don't


_DETECTORS = [
    _Detector("aws.AWSKeyDetector", "an AWS key", ("akia", "asia", "abia", "acca", "a3t", "aws")),
    _Detector("github_token.GitHubTokenDetector", "a GitHub token", ("gho_", "ghp_", "ghr_", "ghs_", "ghu_")),
    _Detector(
        "gitlab_token.GitLabTokenDetector",
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
    _Detector("slack.SlackDetector", "a Slack token", ("xox", "hooks.slack.com")),
    _Detector("stripe.StripeDetector", "a Stripe key", ("k_live_",)),
    _Detector("openai.OpenAIDetector", "an OpenAI key", ("t3blbkfj",)),
    _Detector("jwt.JwtTokenDetector", "a JSON web token", ("eyj",)),
    _Detector("private_key.PrivateKeyDetector", PRIVATE_KEY, ("private key", "putty-user-key")),
    _Detector("basic_auth.BasicAuthDetector", "a password in an address", ("://",)),
    _Detector("twilio.TwilioKeyDetector", "a Twilio key", ("ac", "sk"), has_digits=True, is_long=True),
    _Detector("sendgrid.SendGridDetector", "a SendGrid key", ("sg.",)),
    _Detector("npm.NpmDetector", "an npm token", ("_authtoken",)),
    _Detector("pypi_token.PypiTokenDetector", "a PyPI token", ("pypi-",)),
    _Detector("azure_storage_key.AzureStorageKeyDetector", "an Azure storage key", ("accountkey=",)),
    _Detector("discord.DiscordBotTokenDetector", "a Discord bot token", (".",), is_long=True),
    _Detector("mailchimp.MailchimpDetector", "a Mailchimp key", ("-us",)),
    _Detector("telegram_token.TelegramBotTokenDetector", "a Telegram bot token", (":",), is_long=True),
    _Detector("square_oauth.SquareOAuthDetector", "a Square secret", ("sq0csp-",)),
    _Detector("artifactory.ArtifactoryDetector", "an Artifactory credential", ("akc", "ap"), has_digits=True),
    _Detector("cloudant.CloudantDetector", "a Cloudant credential", ("cl",), has_digits=True, is_long=True),
    _Detector(
        "ibm_cloud_iam.IbmCloudIamDetector",
        "an IBM Cloud key",
        ("key", "pwd", "pass", "token"),
        has_digits=True,
        is_long=True,
    ),
    _Detector(
        "softlayer.SoftlayerDetector", "a SoftLayer credential", ("sl", "softlayer"), has_digits=True, is_long=True
    ),
]
LONG_KEY = re.compile(r"\S{24}")
_WINDOW_CHARS = 2_000  # some patterns are slow on longer lines
_OVERLAP_CHARS = 400
_LONG_TEXT = 10_000  # characters; several pages show the same document
_MAX_REMEMBERED = 100  # texts
_remembered: dict[bytes, list[Match]] = {}
_POSSIBLE_SECRET = re.compile(r"[^\s]{12}|[=:]|passw|secret|private key", re.IGNORECASE)
_TOKEN = re.compile(r"[\w+/=~.-]*(?<![.-])")  # the rest of a token after a pattern's match
_PEM_END = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|Private-MAC: \w+")
_SPELLED_OUT = re.compile(
    r"\b(?:(?:password|passphrase|passwd|pwd)(?: (?:is|was|=)|:|=) ?[\"'`]?(?=\S*\d)(?=\S*[A-Za-z])([^\s\"'`]{6,64})"
    r"|(?:api[ _-]?key|secret(?: key)?|(?:access|auth|bearer) token)(?: (?:is|was|=)|:|=) ?[\"'`]?"
    r"(?=\S*\d)(?=\S*[A-Za-z])([^\s\"'`]{16,200}))",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(  # also references to where a secret is stored, and session keys
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
_NOT_PERSONAL = re.compile(
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


def scan_text(text: str) -> list[Match]:
    """Return the secrets and personal data of a text in order. On overlap, secrets win over personal data.

    Takes about a second for 10,000 rows of a sentence each.
    """
    secrets = list(_secrets(text)) if _POSSIBLE_SECRET.search(text) else []
    return _resolve_overlaps([*secrets, *_personal(text)])


def scan_secrets(text: str) -> list[Match]:
    """Return the secrets in a text, in order. Those of long texts are remembered, without the texts."""
    if len(text) < _LONG_TEXT:
        return _resolve_overlaps(list(_secrets(text)))
    key = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    found = _remembered.get(key)
    if found is None:
        if len(_remembered) >= _MAX_REMEMBERED:
            _remembered.clear()
        found = _remembered[key] = _resolve_overlaps(list(_secrets(text)))
    return list(found)


def scan_value(name: str, value: str) -> list[Match]:
    """Return the secrets and personal data of a value. If ``name`` names a secret, the whole value is one."""
    matches = scan_text(value)
    if value.strip() and names_secret(name, value) and not _PLACEHOLDER.fullmatch(value.strip()):
        what = next((match.what for match in matches if match.kind == SECRET), NAMED)
        return [Match(SECRET, what, 0, len(value))]
    return matches


def scan_instructions(text: str) -> list[Match]:
    """Return the lines that the content check flags."""
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    return [
        Match(
            ORDER,
            _WHAT.get(finding.code, INSTRUCTION_LIKE),
            starts[finding.line - 1],
            starts[finding.line - 1] + len(lines[finding.line - 1]),
        )
        for finding in check_text(text)
    ]


def summarise_matches(matches: Iterable[Match]) -> str:
    """Return matches as one phrase that doesn't quote them: "an AWS key and 2 × phone number"."""
    counts: dict[str, int] = {}
    for match in matches:
        counts[match.what] = counts.get(match.what, 0) + 1
    words = [what if count == 1 else _plural(what, count) for what, count in counts.items()]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _plural(what: str, count: int) -> str:
    if what.startswith(("text ", "invisible ")):
        return what
    plain = what.split(" ", 1)[1]
    return f"{count} × {plain}"


def mask_secrets(text: str, matches: Iterable[Match] | None = None) -> str:
    """Return a text with each secret replaced by •••."""
    matches = scan_text(text) if matches is None else matches
    parts, end = [], 0
    for match in sorted(matches, key=lambda match: match.start):
        if match.kind == SECRET:
            parts += [text[end : match.start], MASK]
            end = match.end
    return "".join([*parts, text[end:]])


def _resolve_overlaps(matches: list[Match]) -> list[Match]:
    """Join overlapping secrets, named by the first with a known format, and drop overlapping personal data."""
    kept: list[Match] = []
    for match in sorted((match for match in matches if match.kind == SECRET), key=lambda match: match.start):
        if kept and match.start < kept[-1].end:
            what = match.what if kept[-1].what == SHAPE else kept[-1].what
            kept[-1] = replace(kept[-1], what=what, end=max(kept[-1].end, match.end))
        else:
            kept.append(match)
    secrets = len(kept)
    for match in sorted((match for match in matches if match.kind != SECRET), key=lambda match: match.start):
        index = bisect_left(kept, match.end, hi=secrets, key=lambda other: other.start)
        is_free = index == 0 or kept[index - 1].end <= match.start
        if is_free and (len(kept) == secrets or kept[-1].end <= match.start):
            kept.append(match)
    return sorted(kept, key=lambda match: match.start)


def _secrets(text: str) -> Iterator[Match]:
    yield from _known_format_secrets(text)
    for found in _SPELLED_OUT.finditer(text):
        group = found.lastindex or 0
        if not _PLACEHOLDER.fullmatch(found[group]):
            yield Match(SECRET, "a password or key", found.start(group), found.end(group))
    covered = 0
    for start, end, is_named in find_secrets(text):
        if start >= covered and _is_reportable(text, start, end, is_named=is_named):
            covered = _private_key_end(text, end) if text[start:end].endswith("PRIVATE KEY-----") else end
            yield Match(SECRET, NAMED if is_named else SHAPE, start, covered)
            covered = 0 if is_named else covered


def _known_format_secrets(text: str) -> Iterator[Match]:
    detectors = _possible_detectors(text, _DETECTORS)
    covered = dict.fromkeys((detector.plugin for detector in detectors), 0)
    for offset, window in _windows(text):
        is_whole = len(window) == len(text)
        for detector in detectors if is_whole else _possible_detectors(window, detectors):
            for start, end in _detector_spans(detector, window):
                if offset + start >= covered[detector.plugin]:
                    covered[detector.plugin] = _secret_end(text, offset + end, detector)
                    yield Match(SECRET, detector.what, offset + start, covered[detector.plugin])


def _possible_detectors(text: str, detectors: Sequence[_Detector]) -> list[_Detector]:
    """Return the detectors that can find something in a text."""
    lower = text.lower()
    hinted = [detector for detector in detectors if any(hint in lower for hint in detector.hints)]
    if any(detector.is_long for detector in hinted) and not LONG_KEY.search(text):
        return [detector for detector in hinted if not detector.is_long]
    return hinted


@cache
def _load(plugin: str) -> RegexBasedDetector:
    """Return a plugin. detect-secrets takes a tenth of a process's start, so it waits for the first text."""
    module, name = plugin.split(".")
    loaded: RegexBasedDetector = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
    return loaded


def _windows(text: str) -> Iterator[tuple[int, str]]:
    for start in range(0, max(1, len(text) - _OVERLAP_CHARS), _WINDOW_CHARS - _OVERLAP_CHARS):
        yield start, text[start : start + _WINDOW_CHARS]


def _detector_spans(detector: _Detector, window: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of a detector's whole regex matches: the plugin itself returns only a group of each."""
    plugin = _load(detector.plugin)
    if next(iter(plugin.analyze_string(window)), None) is None:
        return
    for pattern in plugin.denylist:
        for found in pattern.finditer(window):
            text = found.group()
            before = window[found.start() - 1 : found.start()] if found.start() else ""
            if text[:1].isalnum() and before.isalnum():
                continue  # in the middle of a longer word
            if detector.has_digits and not any(letter.isdigit() for letter in text):
                continue
            if next(iter(plugin.analyze_string(text)), None) is not None:
                yield found.span()


def _secret_end(text: str, end: int, detector: _Detector) -> int:
    """Return where a secret really ends: patterns may match only the start of a token or private key."""
    if detector.what == PRIVATE_KEY:
        return _private_key_end(text, end)
    token = _TOKEN.match(text, end)
    return token.end() if token else end


def _private_key_end(text: str, end: int) -> int:
    closing = _PEM_END.search(text, end)
    return closing.end() if closing else len(text)


def _is_reportable(text: str, start: int, end: int, *, is_named: bool) -> bool:
    """Return whether a likely secret is worth reporting; pages mask more than that, to be safe."""
    value = text[start:end]
    if is_named:
        return not _PLACEHOLDER.fullmatch(value)
    if _HEX.fullmatch(value):
        return not _DIGEST.search(text, max(0, start - 40), start)
    return not value.isalnum() or _is_random(value)


def _is_random(value: str) -> bool:
    """Return whether a value looks random, rather than like words joined together.

    Random text switches between upper case, lower case and digits more often.
    """
    kinds = ["0" if letter.isdigit() else "A" if letter.isupper() else "a" for letter in value]
    changes = sum(one != other for one, other in pairwise(kinds)) / len(kinds)
    return changes >= 0.45 or (changes >= 1 / 3 and kinds.count("0") >= 3)


def _personal(text: str) -> Iterator[Match]:
    if "@" in text:
        yield from _personal_matches(
            text, _EMAIL, "an e-mail address", lambda found: not _NOT_PERSONAL.match(found.group())
        )
    if "+" in text or "＋" in text:
        yield from _phones(text)
    if len(text) >= 14 and _DIGITS.search(text):
        yield from _ibans(text)
        yield from _personal_matches(
            text, _CARD, "a card number", lambda found: luhn.is_valid(re.sub(r"\D", "", found.group()))
        )


def _personal_matches(
    text: str, pattern: re.Pattern[str], what: str, is_real: Callable[[re.Match[str]], bool]
) -> Iterator[Match]:
    for found in pattern.finditer(text):
        if is_real(found):
            yield Match(PERSONAL, what, found.start(), found.end())


def _phones(text: str) -> Iterator[Match]:
    """Yield numbers with a country code; without one, almost any number could be a phone number."""
    from phonenumbers import Leniency, PhoneNumberMatcher

    for plus in _PHONE.finditer(text):
        window = text[plus.start() : plus.start() + _PHONE_CHARS]
        for found in PhoneNumberMatcher(window, None, Leniency.VALID, 1):
            if found.start == 0:
                yield Match(PERSONAL, "a phone number", plus.start(), plus.start() + found.end)


def _ibans(text: str) -> Iterator[Match]:
    """Yield valid IBANs. Capitalised words after one are dropped until its check digits are correct."""
    for found in _IBAN.finditer(text):
        value = found.group()
        while value and not iban.is_valid(value):
            value = value.rpartition(" ")[0]
        if value:
            yield Match(PERSONAL, "a bank account", found.start(), found.start() + len(value))
