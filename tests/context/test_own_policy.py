"""The policy in docs/policies.md works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from context.conftest import NewHost
from context.messages import lines
from context.scenes import ask, bash, finish
from foredeck.context.policies.policy import Policy
from foredeck.context.policies.registry import POLICIES, make_policy

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"


def documented() -> Any:
    """The class in the page's example."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    scope: dict[str, Any] = {}
    exec(code, scope)
    return scope["NothingLarge"]


def test_the_example_fits_the_protocol_and_folds_what_it_says(
    new_host: NewHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy: Policy = documented()(500)
    monkeypatch.setitem(POLICIES, "keep-all", lambda _config: policy)
    host = new_host(policy="keep-all")
    ask(host)
    bash(host, "small", lines(2, "small"))
    bash(host, "large", lines(200, "large"))
    finish(host)
    host.wait(600)
    sent = ask(host)
    assert [sent.text(n).startswith("toolcall_ref") for n in (2, 4)] == [False, True]
    assert sent.record["policy"] == "nothing-large"


def test_every_policy_is_made_under_its_own_name() -> None:
    for name in POLICIES:
        assert make_policy(name).name == name
