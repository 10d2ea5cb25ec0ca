"""Describe a database's schema so that two of them can be compared, whatever order their columns have."""

from __future__ import annotations

import re

from django.db.backends.base.base import BaseDatabaseWrapper

Schema = dict[str, list[str]]
POSTGRES = {
    "column": """
        SELECT c.relname || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
            CASE WHEN a.attnotnull THEN 'NOT NULL' END, CASE WHEN a.attidentity <> '' THEN 'IDENTITY' END,
            CASE WHEN a.attgenerated <> '' THEN 'GENERATED' END, coll.collname, pg_get_expr(d.adbin, d.adrelid))
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        LEFT JOIN pg_collation coll ON coll.oid = a.attcollation
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v')
            AND a.attnum > 0 AND NOT a.attisdropped""",
    "constraint": """
        SELECT conrelid::regclass || ' ' || conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace""",
    "index": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "sequence": "SELECT sequencename, data_type::text FROM pg_sequences WHERE schemaname = 'public'",
    "trigger": "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "function": """
        SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace""",
    "configuration": """
        SELECT c.cfgname || ' ' || t.alias, d.dictname || ' ' || coalesce(d.dictinitoption, '')
        FROM pg_ts_config c JOIN pg_ts_config_map m ON m.mapcfg = c.oid JOIN pg_ts_dict d ON d.oid = m.mapdict
        JOIN ts_token_type(c.cfgparser) t ON t.tokid = m.maptokentype
        WHERE c.cfgnamespace = 'public'::regnamespace""",
}


def schema(connection: BaseDatabaseWrapper) -> Schema:
    """Return each object of a database by kind and name, with the parts of its definition in alphabetical order."""
    found: Schema = {}
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT type || ' ' || name, sql FROM sqlite_master WHERE sql IS NOT NULL")
            for name, sql in cursor.fetchall():
                found[name] = _parts(sql)
        else:
            for kind, query in POSTGRES.items():
                cursor.execute(query)
                for name, definition in cursor.fetchall():
                    found[f"{kind} {name}"] = _parts(definition)
    return found


def _parts(sql: str) -> list[str]:
    """Split a definition at what lists columns: the commas of a table's body, the ORs of an append-only trigger."""
    sql = _plain_lists(" ".join(sql.split()))
    if re.search(r"(_no_update|_no_update\(\)) ", sql):
        return sorted(re.split(r" OR |\(|\)", sql))
    if not sql.startswith("CREATE TABLE"):
        return [sql]
    head, _, body = sql.partition("(")
    return [head.strip(), *sorted(_split(body.strip().removesuffix(")")))]


def _plain_lists(sql: str) -> str:
    """Write lists of texts in one way: PostgreSQL casts them in another after a dump was loaded."""
    sql = re.sub(r"\(\(ARRAY\[([^]]*)\]\)::text\[\]\)", r"(ARRAY[\1])", sql)
    return re.sub(r"\(?('[^']*')::character varying\)?(?:::text)?", r"\1", sql)


def _split(body: str) -> list[str]:
    """Split at the commas outside all parentheses."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(body):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(body[start:place].strip())
            start = place + 1
    return [*parts, body[start:].strip()]
