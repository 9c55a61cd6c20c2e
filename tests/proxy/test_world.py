"""What is around a proxy: a company's proxy and certificates, restarts, a damaged store, clients
that go past it."""

from __future__ import annotations

import http.client
import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from foredeck.errors import ForedeckError
from foredeck_agents.proxy.agents import exempt, run_through, upstreams
from foredeck_agents.proxy.server import kept_token
from foredeck_agents.proxy.upstream import CERTIFICATES, trusted, upstream_client
from foredeck_bench.twin.server import ScriptedModel
from proxy.agents import agent, proxied
from proxy.raw_upstream import RawUpstream

FOREDECK = [sys.executable, "-m", "foredeck.cli.main", "proxy"]
ASK = """
import json, os, urllib.request
body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
request = urllib.request.Request(url, json.dumps(body).encode(), {"x-api-key": "sk-secret"})
print(urllib.request.urlopen(request).read().decode())
"""
COMPANY = """
-----BEGIN CERTIFICATE-----
MIIBgDCCASWgAwIBAgIULvZhGKPpLEj0vJnZFc60jZFnbI8wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJQSBjb21wYW55MCAXDTI2MTEyOTE0MzgxNloYDzIxMjYxMTA1
MTQzODE2WjAUMRIwEAYDVQQDDAlBIGNvbXBhbnkwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATIBhF08slqXYCyKEQ09TA31v4x9MMwodxBVm35cqNGI1WAJep8KJOu
66xF50qACl0eKbNjHUWw4F4yekOIa2g9o1MwUTAdBgNVHQ4EFgQUcgy+DYKqucxB
FyZR7vmzFLneiWYwHwYDVR0jBBgwFoAUcgy+DYKqucxBFyZR7vmzFLneiWYwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAynBT/OQAgfMwDE3JjwlN
+41rxToc7nSCydC7rD0WnxACIQD5pOr+RUwg2DMiN0iFTtg2v3efKKlrN33FqVe0
457vYQ==
-----END CERTIFICATE-----
"""


@pytest.mark.parametrize(
    ("given", "upper", "lower"),
    [
        ({}, "127.0.0.1,localhost,::1", "127.0.0.1,localhost,::1"),
        ({"NO_PROXY": "a.example, localhost"}, "a.example,localhost,127.0.0.1,::1", None),
        ({"no_proxy": ".corp"}, ".corp,127.0.0.1,localhost,::1", None),
        (
            {"NO_PROXY": "a", "no_proxy": "b"},
            "a,127.0.0.1,localhost,::1",
            "b,127.0.0.1,localhost,::1",
        ),
        ({"NO_PROXY": "", "no_proxy": "*"}, "*", "*"),
    ],
)
def test_a_client_reaches_this_machine_without_a_companys_proxy(
    given: Mapping[str, str], upper: str, lower: str | None
) -> None:
    assert exempt(given) == {"NO_PROXY": upper, "no_proxy": lower or upper}


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_only_the_request_to_the_provider_takes_the_companys_proxy(
    tmp_path: Path, name: str
) -> None:
    plain = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    with RawUpstream() as company:
        company.body = b"fine"
        done = subprocess.run(
            [*FOREDECK, "--upstream", "http://model.example", "--", sys.executable, "-c", ASK],
            env={**plain, name: company.url, "FOREDECK_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
    assert [path for _, path, *_ in company.got] == ["http://model.example/v1/messages"]


@pytest.mark.parametrize(
    ("variables", "url", "takes"),
    [
        ({"HTTP_PROXY": " http://company:8 "}, "http://model.example", True),
        ({"https_proxy": "company:8"}, "https://model.example", True),
        ({"ALL_PROXY": "http://company:8", "NO_PROXY": "[::1]"}, "http://[::1]:9", False),
        ({"HTTP_PROXY": "http://company:8", "NO_PROXY": "[::1]:9"}, "http://[::1]:9", False),
        ({"HTTP_PROXY": "http://company:8", "no_proxy": "::1"}, "http://[::1]:9", False),
        ({"HTTP_PROXY": "http://company:8", "NO_PROXY": "*.corp"}, "http://model.corp", False),
        ({"HTTP_PROXY": "http://company:8", "NO_PROXY": "a.x  corp"}, "http://corp", False),
        ({"HTTP_PROXY": "http://company:8", "NO_PROXY": "*"}, "http://model.example", False),
        ({"HTTP_PROXY": "http://company:8", "NO_PROXY": ",,"}, "http://model.example", True),
    ],
)
def test_proxies_are_named_as_other_programs_take_them(
    monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str], url: str, takes: bool
) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    pool = upstream_client({}, print)._transport_for_url(httpx.URL(url))
    assert ("Proxy" in type(getattr(pool, "_pool", pool)).__name__) is takes
    assert {name: os.environ[name] for name in variables} == variables


def test_a_token_behind_a_byte_order_mark_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("\ufeff" + "a" * 40 + "\r\n", encoding="utf-8")
    file.chmod(0o600)
    assert kept_token(file) == "a" * 40


def test_a_proxy_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://company:70")
    with pytest.raises(ForedeckError, match="ALL_PROXY"):
        upstream_client({}, print)


@pytest.mark.parametrize("name", CERTIFICATES)
def test_certificates_of_the_environment_are_trusted(tmp_path: Path, name: str) -> None:
    file, told = tmp_path / "company.pem", list[str]()
    file.write_text(COMPANY)
    if name != "SSL_CERT_DIR":
        assert "A company" in str(trusted({name: str(file)}, told.append).get_ca_certs())
        file.write_text("nothing")
        trusted({name: str(file)}, told.append)
    trusted({name: str(tmp_path / "not there")}, told.append)
    assert all(text.startswith(f"{name} names {tmp_path}") for text in told)
    assert len(told) == (1 if name == "SSL_CERT_DIR" else 2)


def test_an_upgrade_to_a_websocket_is_refused_behind_the_token(tmp_path: Path) -> None:
    with ScriptedModel([]) as model, proxied(model, tmp_path / "h", tmp_path / "w") as proxy:
        answers = []
        for token in (proxy.proxy.token, "wrong"):
            connection = http.client.HTTPConnection(proxy.address.removeprefix("http://"))
            headers = {
                "connection": "Upgrade",
                "upgrade": "websocket",
                "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
                "sec-websocket-version": "13",
            }
            connection.request("GET", f"/{token}/codex/responses", headers=headers)
            answer = connection.getresponse()
            answers.append((answer.status, answer.read()))
            connection.close()
    assert answers == [(426, b"Ask over HTTP.\n"), (404, b"Not found.\n")]
    assert not model.requests


def test_a_token_is_kept_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = kept_token(file)
    assert kept_token(file) == token
    assert len(token) == 43
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    with pytest.raises(ForedeckError, match="chmod 600"):
        kept_token(file)
    file.chmod(0o600)
    for text in ("short", "x" * 31, "with a blank" * 4, "y" * 5000):
        file.write_text(text)
        with pytest.raises(ForedeckError, match="no token"):
            kept_token(file)
    with pytest.raises(ForedeckError, match="cannot be used"):
        kept_token(tmp_path)


def test_a_client_goes_on_after_a_restart_with_the_tokens_file(tmp_path: Path) -> None:
    lines = []
    for _ in range(2):
        process = subprocess.Popen(
            [*FOREDECK, "--token-file", str(tmp_path / "t"), "--private"],
            env={**os.environ, "FOREDECK_HOME": str(tmp_path / "home")},
            stdout=subprocess.PIPE,
            text=True,
        )
        lines.append(process.stdout.readline().partition("ANTHROPIC_BASE_URL=")[2])
        process.terminate()
        process.communicate(timeout=30)
    assert [line.split("/")[3] for line in lines] == [(tmp_path / "t").read_text().strip()] * 2


@pytest.mark.parametrize(
    ("config", "arguments", "name", "base"),
    [
        ("", [], "openai", None),
        ('openai_base_url = "http://gw/v1"', [], "openai", "http://gw/v1"),
        ("not toml", [], "openai", None),
        (
            'model_provider = "corp"\n[model_providers.corp]\nbase_url = "http://corp/v1"',
            [],
            "corp",
            "http://corp/v1",
        ),
        (
            '[model_providers.corp]\nbase_url = "http://corp/v1"',
            ["-c", 'model_provider="corp"'],
            "corp",
            "http://corp/v1",
        ),
        (
            'profile = "a"\n[profiles.b]\nmodel_provider = "corp"',
            ["--profile=b", "-c", 'model_providers.corp.base_url="http://x"'],
            "corp",
            "http://x",
        ),
    ],
)
def test_codex_keeps_the_name_of_its_provider(
    tmp_path: Path, config: str, arguments: list[str], name: str, base: str | None
) -> None:
    (tmp_path / "config.toml").write_text(config)
    command = ["codex", *arguments, "exec", "x"]
    environment = {"CODEX_HOME": str(tmp_path), "OPENAI_API_KEY": "sk", "OPENAI_PROJECT": "mine"}
    run = run_through(command, 1234, "the-token", environment)
    given = " ".join(run.command)
    assert "the-token" not in given
    assert "model_provider=" not in given.replace('model_provider="corp"', "")
    assert "http://127.0.0.1:1234/codex" in given
    if name == "openai":
        assert run.environment["OPENAI_PROJECT"] == "the-token"
        assert run.environment["CODEX_API_KEY"] == "sk"
    else:
        assert f"model_providers.{name}.env_http_headers.x-foredeck-token" in given
        assert run.environment["FOREDECK_PROXY_TOKEN"] == "the-token"
        assert run.environment["OPENAI_PROJECT"] == "mine"
    assert upstreams(None, environment, command)["codex"] == base or "https://api.openai.com/v1"


def test_the_status_page_is_html_and_json(tmp_path: Path) -> None:
    with ScriptedModel(["Done."]) as model, proxied(model, tmp_path / "h", tmp_path / "w") as proxy:
        agent(proxy, "anthropic-messages", tmp_path / "w", session="s<b>").run("Go.")
        proxy.proxy.note("<script>")
        page = httpx.get(f"{proxy.url}/")
        data = httpx.get(f"{proxy.url}/status.json").json()
        same = httpx.get(f"{proxy.url}/", headers={"accept": "application/json"}).json()
    assert page.headers["content-type"].startswith("text/html")
    assert "<script>" not in page.text
    assert "1 requests with foredeck, 0 without" in page.text
    assert data == same
    (state,) = data["conversations"]
    assert (state["model"], state["with_foredeck"], state["without"]) == ("model", 1, 0)
    assert state["prompt_tokens"] > 100
    assert (data["requests"], data["problems"]) == (1, ["<script>"])


def test_a_damaged_store_is_told_of_at_once_and_at_the_next_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(0o700)
    (home / "foredeck.db").write_bytes(b"no database" * 1000)
    said = []
    for _ in range(3):
        done = subprocess.run(
            [*FOREDECK, "--", sys.executable, "-c", ASK.replace("print", "str")],
            env={
                **os.environ,
                "FOREDECK_HOME": str(home),
                "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        said.append([line for line in done.stderr.splitlines() if "damaged" in line])
    assert [len(lines) for lines in said] == [1, 1, 0]
    assert "it is kept as foredeck.db.damaged-" in said[0][0]
    assert "An earlier store was damaged" in said[1][0]


def test_a_store_that_is_damaged_meanwhile_is_on_the_status_page(tmp_path: Path) -> None:
    home = tmp_path / "h"
    with ScriptedModel(["Done."]) as model, proxied(model, home, tmp_path / "w") as proxy:
        home.mkdir(exist_ok=True)
        (home / "foredeck.db").write_bytes(b"no database" * 1000)
        agent(proxy, "anthropic-messages", tmp_path / "w").run("Go.")
        problems = json.loads(httpx.get(f"{proxy.url}/status.json").text)["problems"]
    assert proxy.told == problems
    assert "it is kept as foredeck.db.damaged-" in problems[0]
