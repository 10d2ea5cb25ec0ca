from __future__ import annotations

from typing import Any

from memoryhub.integrity import check_memory
from memoryhub.management.json_command import JsonCommand


class Command(JsonCommand):
    help = "Verify the invariants of the database. The exit status is 1 if one is broken."

    def run(self, *_args: Any, **_options: Any) -> dict[str, Any]:
        result = check_memory()
        self.exit_status = 1 if result.broken else 0
        return {
            "checked": result.checked,
            "broken": [{"invariant": row.invariant, "what": row.what, "where": row.where} for row in result.broken],
            "warnings": result.warnings,
        }

    def show(self, result: dict[str, Any]) -> None:
        broken = {row["invariant"] for row in result["broken"]}
        for name, count in result["checked"].items():
            self.line(f"{'BROKEN' if name in broken else 'ok':>6}  {name} ({count:,})")
        for row in result["broken"]:
            self.line(f"{row['invariant']}: {row['where']}: {row['what']}")
        for warning in result["warnings"]:
            self.line(f"note: {warning}")
