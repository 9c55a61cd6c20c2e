"""Several versions of one object in one prompt: which is which, and which goes first."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, later
from context.test_savings import FILE, part_of, read
from foredeck.config.model import BUILT_IN
from foredeck.model.quoting import is_reference

OTHER = lines(40, "entirely other")


@pytest.mark.parametrize("policy", BUILT_IN)
def test_a_newer_read_of_the_file_supersedes_one_under_every_policy(
    new_host: NewHost, policy: str
) -> None:
    host = new_host(policy=policy).begin()
    read(host, "r1", FILE)
    read(host, "r2", OTHER)
    sent = later(host)
    assert is_reference(sent.text(2))
    assert OTHER in sent.text(4)


def test_a_copy_of_more_lines_is_not_superseded_by_one_of_fewer(host: Host) -> None:
    ask(host)
    read(host, "r1", FILE)
    changed = part_of(9, 10).replace("line", "lime")
    read(host, "r2", changed, offset=10, limit=10)
    sent = later(host)
    assert FILE in sent.text(2)


def test_a_read_that_the_tool_cut_short_does_not_supersede_what_comes_after(host: Host) -> None:
    ask(host)
    read(host, "r1", part_of(30, 10), offset=31)
    cut = part_of(0, 30).replace("line", "lime")
    cut += "\n\n[Showing lines 1-30 of 40. Use offset=31 to continue.]"
    read(host, "r2", cut)
    sent = later(host)
    assert part_of(30, 10) in sent.text(2)


def test_what_a_difference_leans_on_is_not_superseded_by_it(host: Host) -> None:
    ask(host)
    read(host, "r1", FILE)
    read(host, "r2", FILE.replace("line 7:", "line seven:"))
    sent = later(host)
    assert FILE in sent.text(2)
