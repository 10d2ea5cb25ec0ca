"""Take the README's screenshot: the demo's home page in Chromium. `make picture` runs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "home.png"
SIZE = {"width": 1280, "height": 900}
PASSWORD = "a calm sea 42"


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "MEMORYHUB_HOME": home, "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        manage = [sys.executable, str(ROOT / "manage.py")]
        subprocess.run([*manage, "migrate", "--verbosity", "0"], env=environment, check=True)
        subprocess.run([*manage, "demo"], env=environment, check=True, stdout=subprocess.DEVNULL)
        served = subprocess.Popen(
            [*manage, "serve", "--port", "0"], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            take(_setup_link(served))
        finally:
            served.terminate()
            served.wait(30)


def _setup_link(served: subprocess.Popen[str]) -> str:
    assert served.stdout is not None
    for line in served.stdout:
        if found := re.search(r"setup link\s+(\S+)", line):
            return found[1]
    raise SystemExit("The hub didn't start.")


def take(link: str) -> None:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=SIZE)
        page.goto(link)
        page.fill("[name=username]", "olga")
        page.fill("[name=password1]", PASSWORD)
        page.fill("[name=password2]", PASSWORD)
        page.click("main button[type=submit]")
        page.wait_for_selector("text=Secret", timeout=60_000)  # once the worker has scanned the memory
        PICTURE.parent.mkdir(exist_ok=True)
        page.screenshot(path=PICTURE)
        browser.close()
    print(f"{PICTURE.relative_to(ROOT)}, {PICTURE.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
