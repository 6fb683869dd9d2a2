"""The page in a real browser, on a real server. Tests share the server and have a space each; a test that stops the
server or makes keys starts one of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, expect, sync_playwright

import scrubjay
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_MS = 60_000  # a busy machine is no failure
START_SECONDS = 240
PATIENT = {"SCRUBJAY_EMBEDDER": "hashing", "SCRUBJAY_EMBED_WAIT": "60", "SCRUBJAY_JUDGE_WAIT": "0"}

# The page says how many requests it waits for. Playwright hears of a reply before the page does.
COUNTED = """{
  const ask = fetch;
  window.waiting = 0;
  window.fetch = async (...request) => {
    window.waiting++;
    try {
      const reply = await ask(...request);
      await reply.clone().arrayBuffer();
      return reply;
    } finally {
      window.waiting--;
    }
  };
}"""
# Measured by the page itself, so that on a busy machine whatever it has put off for less comes first.
PAUSE = "new Promise((done) => setTimeout(() => done(waiting), 50))"

# What is said in passing goes away after some seconds. On a busy machine a test may come to it only after that.
LASTING = f"""{{
  const timer = setTimeout;
  window.setTimeout = (work, wait, ...more) => timer(work, wait < 8_000 ? wait : {2 * PATIENCE_MS}, ...more);
}}"""

# SCRUBJAY_TEST_SLOWNESS=6: the browser is six times as slow; replies, and the next view after a click, come up to 0.6
# seconds later, in any order.
SLOWNESS = float(os.environ.get("SCRUBJAY_TEST_SLOWNESS", "0"))
LATENESS = f"""{{
  const timer = setTimeout, ask = fetch;
  const later = (work) => timer(work, {100 * SLOWNESS} * Math.random());
  window.fetch = async (...request) => {{
    const reply = await ask(...request);
    await new Promise(later);
    return reply;
  }};
  addEventListener("hashchange", (event) => {{
    if (!event.isTrusted) return;
    event.stopImmediatePropagation();
    later(() => dispatchEvent(new HashChangeEvent("hashchange", event)));
  }});
}}"""

expect.set_options(timeout=PATIENCE_MS)


class Server:
    """A running `scrubjay serve`."""

    def __init__(self, home: Path, **env: str) -> None:
        home.mkdir(exist_ok=True)
        self.home = home
        self._env = {**os.environ, "SCRUBJAY_HOME": str(home), **PATIENT, **env}
        self.port = 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "scrubjay", "serve", "--port", str(self.port)]
        self.process = subprocess.Popen(command, env=self._env, stderr=subprocess.PIPE, text=True)
        patience = threading.Timer(START_SECONDS, self.process.kill)  # ends the reading below
        patience.start()
        said = ""
        for line in self.process.stderr:
            said += line
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise AssertionError(said)
        patience.cancel()
        self._drain = threading.Thread(target=self.process.stderr.read, daemon=True)
        self._drain.start()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=60)
        self._drain.join(timeout=60)
        self.process.stderr.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Site:
    """A space on a server: what a person opens in the browser."""

    def __init__(self, server: Server, space: str = "") -> None:
        self.server = server
        self.space = space
        self.url = server.url
        if space:
            with self.engine() as jay:
                jay.known_spaces.create(space)

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """The same store from another process' side: what agents do while one looks."""
        with scrubjay.open(self.server.home / "memories.db", embedder=HashingEmbedder()) as engine:
            yield engine.bound_to(spaces=(self.space,)) if self.space else engine


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("page") / "home")
    yield server
    server.stop()


SPACES = count(1)


@pytest.fixture
def site(server: Server) -> Site:
    return Site(server, f"space-{next(SPACES)}")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """A server of one's own."""
    servers: list[Server] = []

    def start(**env: str) -> Site:
        servers.append(Server(tmp_path / "home", **env))
        return Site(servers[-1])

    yield start
    for server in servers:
        if not server.process.stderr.closed:
            server.stop()


@pytest.fixture(scope="module")  # while it is open no other test of this process can run an event loop
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "Chromium is missing: `make browser` installs it."
    with sync_playwright() as playwright:
        args = ["--no-sandbox", "--disable-gpu-sandbox"]
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=args, timeout=2 * PATIENCE_MS)


class Looking:
    """One browser window, and everything that should not have happened in it."""

    def __init__(self, page: Page, site: Site) -> None:
        self.page = page
        self.site = site
        self.problems: list[str] = []
        self._asked: set[Request] = set()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", self._request)
        page.on("requestfinished", lambda request: self._asked.discard(request))
        page.on("requestfailed", lambda request: self._asked.discard(request))

    def _console(self, message: ConsoleMessage) -> None:
        # A refused request is shown in words on the page; the browser notes it too.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def _dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.accept()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.site.url, "data:", "blob:")):
            self.problems.append(f"asked elsewhere: {request.url}")
        if not urlsplit(request.url).path.endswith("/events"):  # never ends
            self._asked.add(request)

    def go(self, where: str = "") -> Page:
        """Open a view, anew."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.site.url}/{where}")
        return self.page

    def settled(self, where: str) -> Page:
        """Open a view and wait until everything that it asks for has come."""
        self._asked.clear()
        self.go(where)
        expect(self.page.get_by_role("heading", level=1)).to_have_count(1)
        self.quiet()
        return self.page

    def quiet(self) -> None:
        """Wait until everything that was asked for has come."""
        quiet = 0
        for _ in range(PATIENCE_MS // 50):
            waiting = self.page.evaluate(PAUSE)
            quiet = 0 if waiting or self._asked else quiet + 1
            if quiet == 4:  # typing is followed by a question after 0.12 seconds, an answer perhaps by another
                return
        raise AssertionError(f"{self.page.url} still waits for {[request.url for request in self._asked]}")


@pytest.fixture
def look(browser: Browser) -> Iterator[Callable[..., Looking]]:
    """Opens windows; at the end none may have met an error, a dialog, a violated policy or a request elsewhere."""
    opened: list[Looking] = []

    def look(site: Site, **options: object) -> Looking:
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        if site.space:
            context.add_init_script(f"location.protocol === 'about:' || localStorage.setItem('space', '{site.space}')")
        page = context.new_page()
        if SLOWNESS:
            page.add_init_script(LATENESS)
            context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWNESS})
        page.add_init_script(LASTING)
        page.add_init_script(COUNTED)
        opened.append(Looking(page, site))
        return opened[-1]

    yield look
    problems = [problem for one in opened for problem in one.problems]
    for one in opened:
        one.page.context.close()
    assert problems == []
