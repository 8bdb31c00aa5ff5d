"""A real browser and a shell with this checkout's commands, for the tests that need one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser():
    """Chromium from the system or from Playwright's own bundle; skipped, with the remedy, where there is none.

    It ends with the file: while Playwright is open, other tests of the process cannot run event loops of their own.
    """
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


@pytest.fixture(scope="session")
def axe(request):
    """A function that returns what axe-core finds on an open page, in both colour schemes; installed from npm, once, at a pinned version."""
    npm, pinned = shutil.which("npm"), Path(__file__).parents[1] / "web"
    if npm is None:
        pytest.skip("npm was not found, accessibility is NOT checked: apt-get install npm")
    folder = Path(request.config.cache.mkdir("axe-core"))
    for name in ("package.json", "package-lock.json"):
        shutil.copy(pinned / name, folder)
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    words = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    if not script.exists() and subprocess.run(words, cwd=folder, capture_output=True, timeout=120, check=False).returncode:
        pytest.skip("npm could not install axe-core, accessibility is NOT checked: is there a network, or a mirror set for npm?")
    source = script.read_text(encoding="utf-8")

    def violations(page):
        found = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.evaluate(source)
            result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            found += [
                f"{scheme}: {one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
                for one in result["violations"]
            ]
        return found

    return violations


@pytest.fixture
def shell(tmp_path):
    """Run a script by `bash -e` in an empty folder, with `python` and `dpexplain` being this checkout's; what it printed."""
    tools, work = tmp_path / "bin", tmp_path / "work"
    for folder in (tools, work):
        folder.mkdir()
    for name, words in (("python", '"$@"'), ("dpexplain", "-c 'from dpexplain.cli import app; app()' \"$@\"")):
        (tools / name).write_text(f"#!/bin/sh\nexec {sys.executable} {words}\n")
        (tools / name).chmod(0o755)
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    env = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": path, "COLUMNS": "160"}

    def run(script):
        whole = f"set -eo pipefail\n{script}"
        done = subprocess.run(["bash", "-c", whole], cwd=work, env=env, capture_output=True, text=True, timeout=400, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    return run
