"""Normalise text, so that disguised words compare equal to plain ones."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

INVISIBLE = re.compile(  # zero width, fillers, bidi controls, tags, variation selectors from 17
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
LEGITIMATE_INVISIBLE = re.compile(  # joiners that scripts and emoji need, and soft hyphens
    "(?<=[\u0600-\u06ff\u0900-\u0dff])[\u200c\u200d](?=[\u0600-\u06ff\u0900-\u0dff])"
    "|(?<=[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff])\u200d(?=[\u2600-\u27bf\U0001f000-\U0001faff])"
    "|(?<=[^\\W\\d_])\u00ad(?=[^\\W\\d_])|^\ufeff"
)
SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f"  # of variants of the character before; up to 16
MARKS = re.compile(
    f"[{SELECTORS}\u0300-\u036f\u0483-\u0489\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
_AFTER_LATIN = re.compile(r"(?<=[a-z\u00df-\u024f\u0370-\u052f])[^\w\s\x00-\u02ff]+")
# Letters that look like Latin ones (Unicode's confusables, the ones in use), after folding case and marks.
_LOOKALIKES = str.maketrans(
    "авекмнорстухіјѕһԁԛԝѵғӏαβγεηικνορτυχωϲϳɑɡıɩʟɴʀɪɢʜᴀʙᴄᴅᴇᴊᴋᴍᴏᴘꜱᴛᴜᴠᴡᴢʏ",
    "abekmhopctyxijshdqwvfiabyenikvoptuxwcjagiilnrighabcdejkmopstuvwzy",
)
_LOOKALIKES |= str.maketrans(  # Lisu, Cherokee, Armenian, Coptic
    "ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ" + "ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᎽᏀᏃᏏᏒᏔᏕᏙᏚᏞᏟᏢᏦᏧᏩᏳᏴ".lower() + "օոսհցյազⲁⲃⲉⲏⲓⲕⲙⲛⲟⲣⲥⲧⲩⲭ",
    "bpdtgkjczfmnlsrvhwxyaeiou" + "drtiyajewmhygzbrwsvslcpkdggb" + "onuhgjwqabehikmnopctyx",
)
_LEET = str.maketrans("013457@$!|", "oieastasil")
_SQUARED = str.maketrans(
    {chr(start + i): chr(97 + i) for start in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6) for i in range(26)}
)
_RARE = "\u0531-\u0587\u13a0-\u13ff\u2c80-\u2cff\ua4d0-\ua4ff\uab70-\uabbf"
_FOREIGN_LETTER = re.compile(f"[{_RARE}\u0250-\u02af\u0370-\u052f\u1d00-\u1d7f\ua720-\ua7ff\u0131]")
_LATIN_LETTER = re.compile("[a-z]")
_WORD = re.compile(r"\w+")
_LEET_WORD = re.compile(r"(?<![\w@$!|./:`=-])(?=[\w@$!|]*[a-z])(?=[\w@$!|]*[013457@$!|])[\w@$!|]{3,}")
_SPACED = re.compile(r"(?<!\w)\w(?:([ .\-_*·|/~])\w(?!\w)){3,}")
_OTHER_ALPHABET = re.compile(f"[{_RARE}\u0370-\u052f]")
_ARMENIAN_ENDING = re.compile("(?<=[a-z0-9\u00df-\u024f])[\u0561-\u0587]+(?!\\w)")  # of a Latin name
_STYLED = re.compile("[\U0001d400-\U0001d7ff\u24b6-\u24e9\U0001f130-\U0001f189]")
_ENTITY = re.compile(r"&#x?[0-9a-fA-F]{2,6};")
_PARTLY_BOLD = re.compile(r"(?<!\w)(?:[*_]{1,3}\w+[*_]{1,3}\w|\w+[*_]{2,3}\w+[*_]{2,3})")
_FULL_WIDTH = re.compile("[\uff21-\uff3a\uff41-\uff5a]{2,}")
_SINGLE_LETTERS = re.compile(r"(?<!\w)[^\W\d_](?:([ .\-_*·|/~]{1,3})[^\W\d_](?!\w)){7,}")
_LEET_INSIDE = re.compile(
    r"(?<![\w/:.@-])(?:[a-zA-Z]+[0134579]+[a-zA-Z]+|[0134579]+[a-zA-Z]{2,}[0134579]*)[a-zA-Z0-9]*(?![\w/:.@-])"
)
_ENCODED = re.compile(r"(?<![\w+/=-])(?:[A-Za-z0-9+/_-]{4}){5,}[A-Za-z0-9+/_-]{0,3}={0,2}(?![\w+/=])")
_HEX = re.compile(r"(?<!\w)(?:0x)?(?:[0-9a-fA-F]{2}[ :]?){12,}(?!\w)|(?:\\(?:x|u00)[0-9a-fA-F]{2}){8,}")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2}|[\w+.-]){12,}")
_EMPHASIS = re.compile(r"(?<=\w)[*_~]{1,3}(?=\w)|[*_~]{2,3}")
_MAX_DECODED = 4_000


def fold(text: str) -> str:
    """Return text for matching: NFKC, lower case, without invisible characters, accents and Arabic points.

    Latin, Greek and Cyrillic letters lose the marks of all scripts.
    """
    if text.isascii():
        return text.lower()
    visible = INVISIBLE.sub("", text.translate(_SQUARED))
    decomposed = MARKS.sub("", unicodedata.normalize("NFKD", visible).lower())
    return unicodedata.normalize("NFC", _AFTER_LATIN.sub(_unmarked, decomposed))


def _unmarked(signs: re.Match[str]) -> str:
    return "".join(sign for sign in signs.group() if not unicodedata.category(sign).startswith("M"))


def plain_form(text: str) -> str:
    """Return folded text without emphasis, and with Latin letters in place of look-alikes."""
    plain = _EMPHASIS.sub("", fold(text))
    return _latinised(plain) if _FOREIGN_LETTER.search(plain) else plain


def variants(text: str) -> Iterator[str]:
    """Yield the folded text, then the readings of it in which a disguise is undone."""
    if "&" in text:
        text = html.unescape(text)
    folded = fold(text)
    yield folded
    plain = _EMPHASIS.sub("", folded)
    if plain != folded:
        yield plain
    if _FOREIGN_LETTER.search(plain):
        latin = _latinised(plain)
        if latin != plain:
            yield latin
        bare = _ARMENIAN_ENDING.sub("", plain)
        if bare != plain:
            yield _latinised(bare)
        plain = latin
    leet = _LEET_WORD.sub(lambda match: match.group().translate(_LEET), plain)
    if leet != plain:
        yield leet
    if _SPACED.search(plain):
        yield _joined_letters(plain)


def _latinised(text: str) -> str:
    """Replace the look-alikes in words that mix scripts, or that consist of nothing but look-alikes."""

    def latin(match: re.Match[str]) -> str:
        word = match.group()
        replaced = word.translate(_LOOKALIKES)
        is_plain = not _FOREIGN_LETTER.search(replaced)
        return replaced if is_plain or _LATIN_LETTER.search(word) else word

    return _WORD.sub(latin, text)


def is_disguised(text: str) -> bool:
    """Return whether several words are written with letters of other alphabets or styles, digits, or one by one.

    One such word can be a name or a typing error; ordinary text doesn't have several.
    """
    if len(_STYLED.findall(text)) >= 6 or len(_ENTITY.findall(text)) >= 4 or len(_PARTLY_BOLD.findall(text)) >= 3:
        return True
    if len(_FULL_WIDTH.findall(text)) >= 4 or len(_SINGLE_LETTERS.findall(text)) >= 1:
        return True
    mixed = [
        word
        for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower())
        if _OTHER_ALPHABET.search(word) and _LATIN_LETTER.search(word) and not _is_latin_with_ending(word)
    ]
    return len(mixed) >= 2 or len(_LEET_INSIDE.findall(text)) >= 4


def _is_latin_with_ending(word: str) -> bool:
    """Return whether Armenian letters, not all of which look like Latin ones, only follow Latin letters."""
    bare = _ARMENIAN_ENDING.sub("", word)
    return bare != word and not _OTHER_ALPHABET.search(bare) and bool(_FOREIGN_LETTER.search(_latinised(word)))


def _joined_letters(text: str) -> str:
    """Join the letters of text written with a separator after each one; a double separator ends a word."""
    words = re.split(r"[ .\-_*·|/~]{2,}", text)
    return " ".join(re.sub(r"(?<![^\W_]{2})[ .\-_*·|/~](?=[^\s](?![^\W_]))", "", word) for word in words)


def decoded_texts(text: str) -> Iterator[str]:
    """Yield the readable texts that are hidden in base64, hexadecimal or percent-encoding."""
    for match in _ENCODED.finditer(text):
        yield from _readable(_unbase64(match.group()))
    for match in _HEX.finditer(text):
        digits = re.sub(r"0x|\\x|\\u00|[ :]", "", match.group())
        yield from _readable(bytes.fromhex(digits[: len(digits) // 2 * 2]))
    for match in _PERCENT.finditer(text) if text.count("%") > 2 else ():
        yield from _readable(unquote(match.group(), errors="replace").encode())


def _unbase64(text: str) -> bytes:
    try:
        padded = text.rstrip("=").translate(str.maketrans("-_", "+/"))
        return base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _readable(raw: bytes) -> Iterator[str]:
    """Yield bytes as text if they are UTF-8 words: letters and spaces, no control characters."""
    try:
        text = raw[:_MAX_DECODED].decode()
    except UnicodeDecodeError:
        return
    words = len(re.findall(r"[^\W\d_]{2,}", text))
    if text.isprintable() and ((words >= 3 and " " in text) or (words and not text.isascii() and len(text) >= 6)):
        yield text


def scrambled(text: str) -> Iterator[str]:
    """Yield a folded text read backwards, and with its letters rotated by 13, if it then has a telling word."""
    if _REVERSED.search(text):
        yield text[::-1]
    if _ROTATED.search(text):
        yield codecs.encode(text, "rot13")


_TELLING = "ignore|instruct|prompt|password|disregard|execute|system|previous|forget|override|secret"
_REVERSED = re.compile("|".join(word[::-1] for word in _TELLING.split("|")))
_ROTATED = re.compile(codecs.encode(_TELLING, "rot13"))
