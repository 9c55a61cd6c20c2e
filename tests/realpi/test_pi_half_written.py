"""A file that Pi's own tool has emptied and not written yet: no version of it (docs/objects.md)."""

from __future__ import annotations

import time
from pathlib import Path

from faults import hostile, wait_for_count
from foredeck_bench.twin.script import call
from harness import TEXT, Pi
from observed import object_id, stored

SLOW = """
import fsp from "node:fs/promises";
import { existsSync, utimesSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const write = fsp.writeFile;
fsp.writeFile = async (path, ...rest) => {
  if (String(path).endsWith("/a.txt")) {
    await write(path, "");
    await write(`${path}.emptied`, "");
    // As if it was being emptied all the time, however long all takes on a busy machine: what
    // lies an hour ahead is never long ago.
    for (; !existsSync(`${path}.go`); await new Promise((done) => setTimeout(done, 20)))
      utimesSync(path, new Date(), new Date(Date.now() + 3_600_000));
  }
  return write(path, ...rest);
};
syncBuiltinESMExports();
export default () => {};
"""
"""An extension that stops Pi's writing of `a.txt` between emptying it and writing it."""


def test_an_engine_that_starts_then_waits_for_the_text(
    pi: Pi, checkout: Path, tmp_path: Path
) -> None:
    file = pi.repo / "a.txt"
    file.write_text(TEXT)
    slow = tmp_path / "slow.mjs"
    slow.write_text(SLOW)
    edit = {"oldText": "line 7:", "newText": "line seven:"}
    pi.serve([call("read", path="a.txt"), call("edit", path="a.txt", edits=[edit]), "done"])
    rpc = pi.rpc(foredeck=True, before=[slow], environment=hostile(checkout, tmp_path))
    start = len(rpc.events)
    rpc.send("prompt", message="work")
    while not Path(f"{file}.emptied").exists():
        time.sleep(0.05)
    assert file.read_text() == ""
    rpc.kill_engine()
    wait_for_count(tmp_path, "session/open", 2)
    rpc.command("/foredeck")  # answered after the session was opened
    Path(f"{file}.go").touch()
    rpc.wait_idle(start)
    with stored(pi) as store:
        sizes = [v.fields["char_count"] for v in store.history(object_id(pi, "/a.txt"))]
    assert sizes == [len(TEXT), len(TEXT.replace("line 7:", "line seven:"))]
