"""A picture of the page of `keras-corrupt demo`, by headless Chromium.

    python -m benchmarks.demo_picture --output docs/demo.png

Needs the extra `demo`, `pip install playwright`, and Chromium: `apt install chromium`,
or `playwright install chromium`. It prints which hosts the page asks for anything.
"""

import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import tyro
from playwright.sync_api import sync_playwright


def main(
    output: Path = Path("demo.png"), preset: str = "tiny_en", port: int = 7861
) -> None:
    """Starts the page, lets it mark replaced words, and writes the picture.

    Args:
        output: The file to write.
        preset: The model.
        port: Where the page is.
    """
    demo = ["keras_corrupt", "demo", preset, "--port", str(port)]
    server = subprocess.Popen([sys.executable, "-m", *demo])
    try:
        wait_for(f"http://127.0.0.1:{port}/config", server)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 900, "height": 430})
            hosts = set()
            page.on("request", lambda asked: hosts.add(urlsplit(asked.url).hostname))
            page.goto(f"http://127.0.0.1:{port}/")
            page.get_by_role("button", name="Run").first.click()
            page.locator(".score-token").first.wait_for(timeout=120_000)
            page.wait_for_timeout(1000)  # until what moves stands
            page.screenshot(path=output)
            print("hosts:", ", ".join(sorted(filter(None, hosts))))
    finally:
        server.terminate()
        server.wait()


def wait_for(url, server):
    """Waits until a page answers, or its server has ended."""
    while server.poll() is None:
        try:
            urllib.request.urlopen(url).close()
            return
        except OSError:
            time.sleep(1)
    sys.exit("The page ended before it was there.")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
