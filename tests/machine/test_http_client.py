"""The client that all requests to other machines go through, against real servers on this machine."""

from __future__ import annotations

import errno
import threading
from base64 import b64encode
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scrubjay.errors import InvalidInput
from scrubjay.machine.http_client import NETWORK_ERRORS, Client, HttpLimits, TooLong, fetch_following

LIMITS = HttpLimits(5.0, 5.0, 1_000)


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that leaves before the end is what some tests are about."""


class Site:
    """Answers with what the test has put at a path, and remembers requests."""

    def __init__(self):
        self.pages = {}  # path -> (status, headers, body)
        self.asked = []  # (method, target, headers)
        self.connections = set()
        self.drips = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                site.asked.append((self.command, self.path, self.headers))
                site.connections.add(self.client_address)
                status, headers, body = site.pages.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if self.path != "/drips?endless":
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:1])
                self.wfile.flush()
                if self.path.startswith("/drips"):
                    site.drips.wait(30)
                self.wfile.write(body[1:])

            do_CONNECT = do_GET

            def log_message(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.address}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self):
        self.drips.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site():
    with closing(Site()) as site:
        yield site


@pytest.fixture
def no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


# --- ends ------------------------------------------------------------------------------------------------------------


def test_an_answer_that_is_too_large_is_not_read(site):
    site.pages["/"] = (200, {}, b"x" * 1_001)

    with pytest.raises(TooLong):
        Client(site.url, LIMITS).ask("GET", "/")


@pytest.mark.parametrize("path", ["/drips", "/drips?endless"], ids=["with a length", "without one"])
def test_an_answer_that_drips_is_cut_off_in_time(site, path):
    """What this side cuts off never counts as complete."""
    site.pages[path] = (200, {}, b"x" * 100)

    with pytest.raises(TimeoutError):
        Client(site.url, HttpLimits(30.0, 0.2, 1_000)).ask("GET", path)


def test_what_the_reader_does_wrong_is_not_taken_for_a_fault_of_the_network(site):
    site.pages["/"] = (200, {}, b"much")

    def write_what_comes():
        with Client(site.url, LIMITS).open("GET", "/") as reply:
            raise OSError(errno.ENOSPC, f"no room for {len(reply.read())} bytes")

    with pytest.raises(OSError, match="no room") as caught:
        write_what_comes()

    assert not isinstance(caught.value, NETWORK_ERRORS)


@pytest.mark.parametrize(("url", "key"), [("http://a..example", ""), ("http://127.0.0.1:9", ""), ("{site}", "a\nb")])
def test_what_cannot_be_sent_is_a_fault_of_the_network(site, url, key):
    with pytest.raises(NETWORK_ERRORS):
        Client(url.replace("{site}", site.url), LIMITS, key=key).ask("GET", "/")


def test_an_address_of_this_machine_is_refused_where_private_ones_are(site):
    with pytest.raises(InvalidInput):
        Client(site.url, LIMITS, private=False).ask("GET", "/")

    assert site.asked == []


# --- connections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False])
def test_a_connection_is_used_again_where_that_is_wanted(site, kept):
    site.pages["/"] = (200, {}, b"tea")

    with closing(Client(site.url, LIMITS, keep_alive=kept)) as client:
        assert [client.ask("GET", "/").body for _ in range(3)] == [b"tea"] * 3

    assert len(site.connections) == (1 if kept else 3)


def test_half_an_answer_is_never_read_by_the_next_question(site):
    site.pages |= {"/": (200, {}, b"tea\nmilk\n"), "/other": (200, {}, b"juice")}

    with closing(Client(site.url, LIMITS, keep_alive=True)) as client:
        with client.open("GET", "/") as reply:
            assert next(reply.lines()) == b"tea\n"
        assert client.ask("GET", "/other").body == b"juice"


def test_a_name_and_password_in_an_address_are_sent_as_such(site):
    Client(f"http://ann:a%40b@{site.address}", LIMITS).ask("GET", "/")

    assert site.asked[0][2]["Authorization"] == f"Basic {b64encode(b'ann:a@b').decode()}"


# --- redirects -------------------------------------------------------------------------------------------------------


def test_a_download_follows_redirects_with_its_range_and_their_query(site):
    site.pages |= {"/a": (302, {"Location": "/b?x=1"}, b"elsewhere"), "/b?x=1": (206, {}, b"rest")}

    with fetch_following(f"{site.url}/a", LIMITS, {"Range": "bytes=4-"}) as reply:
        assert (reply.status, b"".join(iter(reply.read, b""))) == (206, b"rest")

    assert [(path, headers["Range"]) for _, path, headers in site.asked] == [("/a", "bytes=4-"), ("/b?x=1", "bytes=4-")]


@pytest.mark.parametrize("target", ["/a", "file:///etc/passwd", "http://[::1", ""])
def test_a_redirect_that_leads_nowhere_is_an_error(site, target):
    site.pages["/a"] = (301, {"Location": target}, b"")

    with pytest.raises(NETWORK_ERRORS), fetch_following(f"{site.url}/a", LIMITS, {}) as reply:
        reply.body()


def test_no_other_request_follows_one(site):
    site.pages["/a"] = (307, {"Location": "/b"}, b"")

    assert Client(site.url, LIMITS, proxies=True).ask("GET", "/a").status == 307
    assert len(site.asked) == 1


# --- proxies ---------------------------------------------------------------------------------------------------------


def test_a_proxy_is_told_the_whole_address(site, monkeypatch, no_proxies):
    monkeypatch.setenv("http_proxy", f"http://ann:tea@{site.address}")
    site.pages["http://far.example/v1/list"] = (200, {}, b"by way of the proxy")

    answer = Client("http://far.example/v1", LIMITS, proxies=True).ask("GET", "/list")

    assert answer.body == b"by way of the proxy"
    assert site.asked[0][2]["Proxy-Authorization"] == f"Basic {b64encode(b'ann:tea').decode()}"
    assert site.asked[0][2]["Host"] == "far.example"


def test_what_is_encrypted_goes_through_a_proxy_in_a_tunnel(site, monkeypatch, no_proxies):
    monkeypatch.setenv("https_proxy", f"http://ann:tea@{site.address}")

    with pytest.raises(NETWORK_ERRORS):  # the site knows no tunnel
        Client("https://far.example/v1", LIMITS, key="secret", proxies=True).ask("GET", "/list")

    [(method, target, headers)] = site.asked
    assert (method, target) == ("CONNECT", "far.example:443")
    assert headers["Proxy-Authorization"] == f"Basic {b64encode(b'ann:tea').decode()}"
    assert "secret" not in str(headers)


def test_without_leave_and_for_this_machine_there_is_no_proxy(site, monkeypatch, no_proxies):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    site.pages["/"] = (200, {}, b"tea")

    assert Client(site.url, LIMITS).ask("GET", "/").body == b"tea"
    assert Client(site.url, LIMITS, proxies=True).ask("GET", "/").body == b"tea"
    monkeypatch.setenv("no_proxy", "far.example")
    with pytest.raises(NETWORK_ERRORS):
        Client("http://far.example", HttpLimits(0.2, 0.2, 1), proxies=True).ask("GET", "/")
