"""Take the README's pictures of the demo in Chromium, as WebP files. `make pictures` runs it."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
SIZE: ViewportSize = {"width": 1280, "height": 800}
MAX_BYTES = 150_000
QUALITIES = (0.9, 0.8, 0.7, 0.5)
PASSWORD = "a calm sea 42"
TO_WEBP = """([png, quality]) => new Promise((resolve) => {
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d").drawImage(image, 0, 0);
    resolve(canvas.toDataURL("image/webp", quality).split(",")[1]);
  };
  image.src = "data:image/png;base64," + png;
})"""


def home(page: Page, base: str) -> None:
    page.goto(base)
    page.wait_for_selector("#workspaces")


def search(page: Page, base: str) -> None:
    page.goto(f"{base}search/?q=dome+close")
    page.wait_for_selector(".search-hit")


def review(page: Page, base: str) -> None:
    page.goto(f"{base}w/atlas/review/")
    page.click("main li a >> nth=0")
    page.wait_for_selector("main form")


def graph(page: Page, base: str) -> None:
    page.goto(f"{base}w/atlas/graph/")
    page.wait_for_timeout(1500)  # until it is drawn


SHOTS: dict[str, Callable[[Page, str], None]] = {"home": home, "search": search, "review": review, "graph": graph}


def main() -> None:
    chosen = sys.argv[1:] or list(SHOTS)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "MEMORYHUB_HOME": folder, "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
        manage = [sys.executable, str(ROOT / "manage.py")]
        subprocess.run([*manage, "migrate", "--verbosity", "0"], env=environment, check=True)
        subprocess.run([*manage, "demo"], env=environment, check=True, stdout=subprocess.DEVNULL)
        served = subprocess.Popen(
            [*manage, "serve", "--port", "0"], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            take(_setup_link(served), chosen)
        finally:
            served.terminate()
            served.wait(30)


def _setup_link(served: subprocess.Popen[str]) -> str:
    assert served.stdout is not None
    for line in served.stdout:
        if found := re.search(r"setup link\s+(\S+)", line):
            return found[1]
    raise SystemExit("The hub didn't start.")


def take(link: str, chosen: list[str]) -> None:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=SIZE)
        page.goto(link)
        page.fill("[name=username]", "olga")
        page.fill("[name=password1]", PASSWORD)
        page.fill("[name=password2]", PASSWORD)
        page.click("main button[type=submit]")
        base = re.sub(r"(https?://[^/]+/).*", r"\1", link)
        for name in chosen:
            SHOTS[name](page, base)
            file = PICTURES / f"{name}.webp"
            file.write_bytes(_webp(browser, page.screenshot()))
            print(f"{file.relative_to(ROOT)}, {file.stat().st_size // 1000} kB")
        browser.close()


def _webp(browser: Browser, png: bytes) -> bytes:
    """Return a picture as WebP, in the best quality that fits."""
    blank = browser.new_page()
    encoded = base64.b64encode(png).decode()
    for quality in QUALITIES:
        picture = base64.b64decode(blank.evaluate(TO_WEBP, [encoded, quality]))
        if len(picture) <= MAX_BYTES:
            break
    blank.close()
    return picture


if __name__ == "__main__":
    main()
