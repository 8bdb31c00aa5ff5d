"""A real browser for the tests that need one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def browser():
    """Chromium from the system or from Playwright's own bundle; skipped, with the remedy, where there is none."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is missing, the page is NOT tested: pip install playwright"
    )
    with sync_api.sync_playwright() as playwright:
        names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
        found = next(filter(None, map(shutil.which, names)), playwright.chromium.executable_path)
        if not Path(found).exists():
            pytest.skip(
                "no Chromium was found, the page is NOT tested in a browser: apt-get install chromium, or playwright install chromium"
            )
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()
