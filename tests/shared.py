"""Paths of shared samples next to the clone. Tests that need them are skipped without them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"
FIXTURES = SHARED / "fixtures"
BADINPUT = SHARED / "badinput"


def badinput_cases(*kinds: str) -> list[dict[str, Any]]:
    index = BADINPUT / "index.json"
    if not index.exists():
        return []
    return [case for case in json.loads(index.read_text())["cases"] if case["kind"] in kinds]


def packlib() -> ModuleType:
    spec = importlib.util.spec_from_file_location("packlib", BADINPUT / "packlib.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
