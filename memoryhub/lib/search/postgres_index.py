"""Search indexes on PostgreSQL: a generated tsvector column with a GIN index, and the functions that it uses.

Words are split, folded and stemmed in the same way as by SQLite's tokenizer, so that both databases find the same
rows. The functions refer only to PostgreSQL's built-in objects, so that a dump can be restored.
"""

from __future__ import annotations

import unicodedata

from memoryhub.lib.search.indexes import INDEXED_CHARS, PAIRED_CHARS, Index, index_name
from memoryhub.lib.search.tokenizing import EMOJI, EMOJI_PREFIX, INVISIBLE, MARKS, PAIRED

COLUMN = "words"
CONFIGURATION = "memoryhub"
PENDING = 256  # KB of new rows that aren't sorted into an index yet: each word of a search reads all of them
SEPARATORS = (  # characters that aren't letters, digits or marks
    "\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7"
    "\u2000-\u206f\u20a0-\u20cf\u2190-\u2bff\u3000-\u3004\u3007-\u3020\u3030\u30fb\ue000-\uf8ff\ufe30-\ufe6f\ufffd"
    "\u05be\u05c0\u05c3\u05c6\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066d\u06d4\u0e4f\u0e5a\u0e5b\u104a-\u104f\u17d4-\u17da\u30a0"
    "\U0001f000-\U0001faff"
)
# Vowel signs of Indic scripts separate words for SQLite's tokenizer and Python's re, but not for PostgreSQL.
SIGNS = "".join(chr(sign) for sign in range(0x900, 0xE00) if unicodedata.category(chr(sign))[0] == "M")
_BARE = f"normalize(regexp_replace(lower(normalize($1, NFKD)), '[{MARKS}{INVISIBLE}]', '', 'g'), NFC)"
_BARE = f"replace(replace(translate({_BARE}, 'ςı', 'σi'), 'ß', 'ss'), 'ẞ', 'ss')"
TEXT_SEARCH = [
    "CREATE TEXT SEARCH DICTIONARY memoryhub_porter (TEMPLATE = snowball, LANGUAGE = porter)",
    "CREATE TEXT SEARCH CONFIGURATION memoryhub (COPY = simple)",
    "ALTER TEXT SEARCH CONFIGURATION memoryhub ALTER MAPPING FOR asciiword, hword_asciipart WITH memoryhub_porter",
]
FUNCTIONS = [
    f"""CREATE OR REPLACE FUNCTION memoryhub_folded(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT regexp_replace({_BARE}, '[{SEPARATORS}{SIGNS}]+', ' ', 'g') $$""",
    """CREATE OR REPLACE FUNCTION memoryhub_camel(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT CASE WHEN $1 ~ '[a-zı][A-Z]' THEN (
            SELECT lower(string_agg(regexp_replace(found[1], '([a-z])([A-Z])', '\\1 \\2', 'g'), ' '))
            FROM regexp_matches(replace($1, 'ı', 'i'), '[A-Za-z]*[a-z][A-Z][A-Za-z]*', 'g') found) ELSE '' END $$""",
    f"""CREATE OR REPLACE FUNCTION memoryhub_pairs(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT CASE WHEN $1 ~ '[{PAIRED}{EMOJI}]' THEN (
            SELECT string_agg(CASE WHEN one ~ '[{EMOJI}]' THEN '{EMOJI_PREFIX}' || ascii(one)
                WHEN next ~ '[{PAIRED}]' THEN one || next ELSE one END, ' ' ORDER BY n)
            FROM (SELECT one, n, coalesce(lead(one) OVER (ORDER BY n), '') AS next
                  FROM regexp_split_to_table(left({_BARE}, {PAIRED_CHARS}), '')
                  WITH ORDINALITY AS split(one, n)) neighbours
            WHERE one ~ '[{PAIRED}{EMOJI}]') ELSE '' END $$""",
    """CREATE OR REPLACE FUNCTION memoryhub_day(timestamptz) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT CASE WHEN $1 IS NULL THEN '' ELSE concat_ws(' ', d, (ARRAY['january', 'february', 'march', 'april',
            'may', 'june', 'july', 'august', 'september', 'october', 'november', 'december'])[m], y,
            (ARRAY['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'])[w + 1],
            lpad(y::text, 4, '0'), lpad(m::text, 2, '0'), lpad(d::text, 2, '0')) END
        FROM (SELECT extract(day FROM at)::int AS d, extract(month FROM at)::int AS m,
            extract(year FROM at)::int AS y, extract(dow FROM at)::int AS w
            FROM (SELECT $1 AT TIME ZONE 'UTC' AS at) moment) parts $$""",
]
REMOVED = [
    "DROP FUNCTION IF EXISTS memoryhub_day(timestamptz)",
    "DROP FUNCTION IF EXISTS memoryhub_pairs(text)",
    "DROP FUNCTION IF EXISTS memoryhub_camel(text)",
    "DROP FUNCTION IF EXISTS memoryhub_folded(text)",
    "DROP TEXT SEARCH CONFIGURATION IF EXISTS memoryhub",
    "DROP TEXT SEARCH DICTIONARY IF EXISTS memoryhub_porter",
]


def install_sql(index: Index) -> list[str]:
    """Return the SQL statements that create an index; PostgreSQL fills it when it adds the column."""
    return [
        f"ALTER TABLE {index.table} ADD COLUMN {COLUMN} tsvector GENERATED ALWAYS AS ({_vector(index)}) STORED",
        f"CREATE INDEX {index_name(index.table)} ON {index.table} USING gin ({COLUMN})"
        f" WITH (gin_pending_list_limit = {PENDING})",
    ]


def remove_sql(table: str) -> list[str]:
    """Return the SQL statements that drop an index."""
    return [f"ALTER TABLE {table} DROP COLUMN IF EXISTS {COLUMN}"]


def _vector(index: Index) -> str:
    content = f"left({_joined([index.text_sql(name) for name in index.content])}, {INDEXED_CHARS})"
    meta = _joined(
        [*[index.text_sql(name) for name in index.meta], *([f'memoryhub_day("{index.time}")'] if index.time else [])]
    )
    parts = [f"memoryhub_folded({content})", f"memoryhub_camel({content})", f"memoryhub_pairs({content})"]
    words = " || ' ' || ".join([*parts, *([f"memoryhub_folded({meta})"] if meta != "''" else [])])
    scope = [f"'#{letter}' || coalesce(\"{column}\", 0)::text" for letter, column in index.scope.items()]
    scope += [f"'#k' || \"{index.kind}\""] if index.kind else []  # no indexed word contains "#"
    vector = f"to_tsvector('{CONFIGURATION}', {words}) || array_to_tsvector(ARRAY[{', '.join(scope)}])"
    return f"CASE WHEN {index.hidden_sql} THEN ''::tsvector ELSE {vector} END" if index.hidden_sql else vector


def _joined(parts: list[str]) -> str:
    return " || chr(10) || ".join(parts) or "''"
