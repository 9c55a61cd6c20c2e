"""Nobody reads without the token, and nothing that is stored runs in the browser."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Any

import httpx
import pytest

from foredeck.loopback import listening_on
from processes import run_program

from .conftest import LONG_LINE, Served, started

HOSTILE_SESSION = "0199bbbb-hostile"


def test_without_the_token_nothing_is_read(served: Served) -> None:
    for path in ("/overview", "/overview.json", "/static/style.css", "/?token=wrong"):
        answer = httpx.get(served.base + path)
        assert answer.status_code == 403
        assert "foredeck ui" in answer.text


def test_no_piece_of_an_answer_waits_for_the_one_before() -> None:
    with (
        listening_on([0]) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_token_is_in_no_address_afterwards(served: Served) -> None:
    answer = httpx.get(f"{served.base}/search?q=a&token={served.token}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/search?q=a")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


def test_no_redirect_leads_elsewhere(served: Served) -> None:
    answer = httpx.get(f"{served.base}//evil.example/x?token={served.token}")
    assert answer.headers["location"] == "/evil.example/x"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost"])
def test_other_names_for_this_machine_are_refused(served: Served, host: str) -> None:
    assert served.client.get("/overview", headers={"host": host}).status_code == 421


def test_other_sites_are_refused(served: Served) -> None:
    answer = served.client.get("/overview", headers={"origin": "https://evil.example"})
    assert answer.status_code == 403


def test_a_token_is_good_for_one_run_and_in_no_file(served: Served) -> None:
    files = [file for file in served.home.rglob("*") if file.is_file()]
    assert not [file for file in files if served.token.encode() in file.read_bytes()]
    process, address = started(served.home)
    try:
        base, _, token = address.partition("/?token=")
        assert token != served.token
        for name in (base.rpartition(":")[2], served.base.rpartition(":")[2]):
            cookie = {"cookie": f"foredeck-{name}={served.token}"}
            assert httpx.get(f"{base}/sessions", headers=cookie).status_code == 403
        assert httpx.get(f"{base}/?token={served.token}").status_code == 403
        assert "Max-Age" not in httpx.get(address).headers["set-cookie"]
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize(
    "path",
    [
        "/objects/%00",
        "/sessions/%00.json",
        "/compare?left=a%00b",
        "/search?q=%00",
        "/notes?tag=%00",
    ],
)
def test_a_null_character_is_a_bad_request(served: Served, path: str) -> None:
    answer = served.client.get(path)
    assert answer.status_code == 400
    assert "null character" in answer.text


PAGES = (
    *(
        "/sessions/{}",
        "/sessions/{}?view=calls&text={}&cost={}",
        "/sessions/{}?first={}&message={}",
    ),
    *("/sessions/s/calls/{}", "/sessions/s/calls/1?base={}", "/compare?left={}&right={}"),
    *("/objects/{}", "/objects/{}?lines=1", "/objects/{}?version={}"),
    *("/search?type={}&objects.page={}", "/notes?tag={}", "/memory?place={}", "/static/{}"),
    *("/search?q={}&type={}&session={}", "/overview?project={}&sessions.page={}", "/{}"),
)
NAMES = (
    *("%ff", "%ed%a0%80", "..", "%2e%2e%2f..", "%25%30%30", "%0d%0a", "9" * 30, "-1", "x" * 5000),
    *("s:@1", "@1%20v99999999999999999999", "call:s:1", "git:HEAD:a", "%5B%5Ba%5D%5D", "m-abcd"),
)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("twin", ["", ".json", ".csv"])
def test_no_name_is_more_than_asked_for_in_vain(served: Served, page: str, twin: str) -> None:
    path, sign, query = page.partition("?")
    for name in NAMES:
        answer = served.client.get(f"{path}{twin}{sign}{query}".replace("{}", name))
        assert answer.status_code in (200, 400, 404), name[:30]


@pytest.mark.parametrize("path", ["/memory", "/overview"])
def test_nothing_is_posted(served: Served, path: str) -> None:
    own = {"origin": served.base}
    assert served.client.post(path, data={"act": "delete"}, headers=own).status_code == 405


def test_only_loopback_is_listened_on(served: Served) -> None:
    assert served.address.startswith("http://127.0.0.1:")


def _hostile_pages(served: Served) -> list[str]:
    objects: Any = served.value("/search.json?contains=evil")["objects"]
    calls: Any = served.value("/search.json?type=toolcall")["objects"]
    ids = [each["object"] for each in (*objects, *calls)]
    session = f"/sessions/{HOSTILE_SESSION}"
    return [
        "/overview",
        *(f"{session}?view={view}" for view in ("calls", "turns", "noted")),
        *(f"{session}/calls/{n}" for n in (1, 2, 3)),
        f"{session}?text=%3Cscript%3E",
        f"/compare?left={HOSTILE_SESSION}&right={HOSTILE_SESSION}",
        *(f"/objects/{id}{part}" for id in ids for part in ("", "?base=1")),
        *(f"/objects/{each['object']}?lines=1" for each in objects),
        "/search?type=toolcall",
        "/notes",
        "/notes?tag=%3Ci%3E",
        "/search?q=%3Cscript%3Efetch",
    ]


def test_what_is_stored_becomes_no_markup_and_loads_nothing(served: Served) -> None:
    for path in _hostile_pages(served):
        html = served.page(path)
        assert "<script>fetch" not in html, path
        assert "<img" not in html, path
        assert "\x1b" not in html, path
        assert 'src="http' not in html, path
        assert 'href="http' not in html, path
        assert " style=" not in html, path  # the content policy would leave it out


def test_a_line_of_a_million_characters_is_shown(served: Served) -> None:
    html = served.page(f"/sessions/{HOSTILE_SESSION}/calls/2")
    assert LONG_LINE[:3000] in html


def test_every_answer_has_the_content_policy(served: Served) -> None:
    for path in ("/overview", "/overview.json", "/static/script.js", "/nothing"):
        headers = served.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def _ui(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "foredeck.cli.main", "ui", "--no-open", *arguments)
    return run_program(*command, env={**os.environ, **environment}, timeout=60)


def test_with_nothing_stored_it_says_what_to_do() -> None:
    ended = _ui()
    assert ended.returncode == 4
    assert "nothing is stored yet" in ended.stderr


def test_a_port_that_is_taken_is_named(served: Served) -> None:
    port = served.base.rpartition(":")[2]
    ended = _ui("--port", port, FOREDECK_HOME=str(served.home))
    assert ended.returncode == 1
    assert f"port {port} is taken" in ended.stderr


def test_cookies_of_others_are_no_matter(served: Served) -> None:
    port = served.base.rpartition(":")[2]
    for other in ('theme={"a":1}', "path=x", "a=b c", "foo"):
        cookie = f"{other}; foredeck-{port}={served.token}"
        answer = httpx.get(f"{served.base}/memory", headers={"cookie": cookie})
        assert answer.status_code == 200, other
