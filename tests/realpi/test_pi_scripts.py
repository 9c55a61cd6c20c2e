"""Scripts of code mode: what they call, also at a time without foredeck."""

from __future__ import annotations

from foredeck.model.own_tools import OWN_TOOLS
from foredeck_bench.twin.script import call
from harness import TEXT, Asked, Pi
from observed import answered, object_id, results, stored


def test_a_script_cannot_call_foredecks_tools(pi: Pi) -> None:
    """What they decide is in their results, of which Pi keeps none that a script has got."""
    (pi.repo / "a.txt").write_text(TEXT)
    pinning = "return 'answered: ' + (await tools.pin({ id: 'a.txt' }));"
    listing = "return ALL_TOOLS.map((tool) => tool.name).join(' ');"
    scripts = [call("codemode", code=script) for script in (pinning, listing)]
    model = pi.serve([call("read", path="a.txt"), *scripts, "done"])
    pi.rpc(foredeck=True, arguments=["--tools", "+codemode"]).prompt("run it")
    _, called, listed = results(answered(model)[-1])
    assert "Script failed" in called
    assert "answered" not in called
    callable = set(listed.split())
    assert "read" in callable
    assert not OWN_TOOLS & callable
    assert {"pin", "activate"} <= {tool["name"] for tool in model.requests[0].request.body["tools"]}


def test_files_of_scripts_have_versions_though_foredeck_was_off(pi: Pi, asked: Asked) -> None:
    """Pi's session file names what a script has called; so does the result in its list."""
    (pi.repo / "a.txt").write_text(TEXT)
    script = (
        "await tools.write({ path: 'b.txt', content: 'one' }); "
        "await tools.edit({ path: 'b.txt', edits: [{ oldText: 'one', newText: 'two' }] }); "
        "return (await tools.read({ path: 'a.txt' })).length;"
    )
    pi.serve([call("codemode", code=script), "done", "on again"])
    rpc = pi.rpc("run it", arguments=["--tools", "+codemode"])
    rpc.shutdown()
    (file,) = pi.workspace.session_files()
    resumed = ["--session", str(file), "--tools", "+codemode"]
    pi.rpc("go on", foredeck=True, arguments=resumed).shutdown()
    with stored(pi) as store:
        (ran,) = [h for h in store.query("toolcall") if h.fields["tool"] == "codemode"]
    assert ran.fields["file_refs"] == [object_id(pi, "/b.txt"), object_id(pi, "/a.txt")]
    elsewhere = ("--home", str(pi.workspace.root / "history"))
    asked("ingest", str(file), *elsewhere)
    assert asked("cat", "b.txt", *elsewhere) == "two"
