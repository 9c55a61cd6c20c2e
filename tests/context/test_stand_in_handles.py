"""Of several texts that come in at one rebase each names its own object."""

from __future__ import annotations

import re

from context.conftest import NewHost
from context.noted import Noted
from context.test_stand_ins import after_pause, texts, work


def test_each_text_names_the_object_that_it_is(new_host: NewHost) -> None:
    host = new_host()
    noted = Noted(host)
    work(host, 5)
    noted.observe(0, 8, "* 10:00 parts 1 and 2 were looked at")
    noted.observe(8, 16, "* 10:20 parts 3 and 4 were looked at")
    sent = after_pause(host)
    found = re.findall(r"from notes \(@(\d+)\)", "\n".join(texts(sent)))
    index = host.state.objects.index
    named = [index.by_object[f"observation:s:{number}"] for number in (0, 1)]
    assert list(map(int, found)) == named
    assert len({*named}) == 2
