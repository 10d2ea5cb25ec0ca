"""What a process imports before it can answer a request."""

import os
import subprocess
import sys

import pytest
from django.conf import settings

PROGRAM = """import sys, django; django.setup(); import memoryhub.urls; print(*sys.modules)
import memoryhub.asgi
from memoryhub.lib.traces import shut_down, traced
with traced("x"): pass
shut_down()
print(*sys.modules)"""
ONLY_FOR_SOME_WORK = {"detect_secrets", "mcp", "networkx", "numpy", "openai", "openpyxl", "phonenumbers", "requests"}
ONLY_IF_ON = {"prometheus_client", "opentelemetry.sdk", "opentelemetry.exporter"}


@pytest.mark.slow
def test_packages_that_only_some_work_needs_are_imported_by_that_work():
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "memoryhub.settings", "DATABASE_URL": ""}
    command = [sys.executable, "-c", PROGRAM]
    listing = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True)
    loaded, loaded_to_serve = map(set, map(str.split, listing.stdout.splitlines()))

    assert "memoryhub.urls" in loaded, listing.stderr
    assert loaded & ONLY_FOR_SOME_WORK == set()
    assert "memoryhub.asgi" in loaded_to_serve
    assert loaded_to_serve & ONLY_IF_ON == set()
