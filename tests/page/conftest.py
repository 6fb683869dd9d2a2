"""The page in a real browser, on a real server with a store of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

import scrubjay
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCREENSHOTS = os.environ.get("SCRUBJAY_SCREENSHOTS")  # where pictures for the documentation go


class Site:
    """A running `scrubjay serve`."""

    def __init__(self, home: Path, **env: str) -> None:
        self.home = home
        self._env = {**os.environ, "SCRUBJAY_HOME": str(home), "SCRUBJAY_EMBEDDER": "hashing", **env}
        self.port = 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "scrubjay", "serve", "--port", str(self.port)]
        self.process = subprocess.Popen(command, env=self._env, stderr=subprocess.PIPE, text=True)
        said = ""
        for line in self.process.stderr:
            said += line
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        assert self.port, said
        self._drain = threading.Thread(target=self.process.stderr.read, daemon=True)
        self._drain.start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)
        self._drain.join()
        self.process.stderr.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def engine(self) -> Engine:
        """The same store from another process' side: what agents do while one looks."""
        return scrubjay.open(self.home / "memories.db", embedder=HashingEmbedder())


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def start(**env: str) -> Site:
        (tmp_path / "home").mkdir(exist_ok=True)
        sites.append(Site(tmp_path / "home", **env))
        return sites[-1]

    yield start
    for site in sites:
        if site.process.poll() is None:
            site.process.kill()
            site.stop()


@pytest.fixture(scope="module")  # while it is open no other test of this process can run an event loop
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "Chromium is missing: `make browser` installs it."
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu-sandbox"])


class Looking:
    """One browser window, and everything that should not have happened in it."""

    def __init__(self, page: Page, site: Site) -> None:
        self.page = page
        self.site = site
        self.problems: list[str] = []
        self.dialogs: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        # A refused request is shown in words on the page; the browser notes it too.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def _dialog(self, dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.accept()

    def _request(self, request) -> None:
        if not request.url.startswith((self.site.url, "data:", "blob:")):
            self.problems.append(f"asked elsewhere: {request.url}")

    def go(self, where: str = "") -> Page:
        self.page.goto(f"{self.site.url}/{where}")
        return self.page

    def picture(self, name: str) -> None:
        if SCREENSHOTS:
            self.page.screenshot(path=f"{SCREENSHOTS}/{name}.png")


@pytest.fixture
def look(browser: Browser) -> Iterator[Callable[..., Looking]]:
    """Opens windows; at the end none may have met an error, a violated policy or a request to somewhere else."""
    opened: list[Looking] = []

    def look(site: Site, **options: object) -> Looking:
        context = browser.new_context(**options)
        context.set_default_timeout(15_000)
        opened.append(Looking(context.new_page(), site))
        return opened[-1]

    yield look
    problems = [problem for one in opened for problem in one.problems]
    for one in opened:
        one.page.context.close()
    assert problems == []
