"""What earlier sessions did is found through the real Pi, and tools are switched per project."""

from __future__ import annotations

from foredeck_bench.twin.script import call
from foredeck_bench.twin.server import ScriptedModel
from harness import Asked, Pi
from observed import results

SOURCE = "export const LoginSchema = 1;\n" + "".join(f"// line {n}\n" for n in range(60))


def hits(model: ScriptedModel) -> list[str]:
    """The names of the hits in the newest result, which its own handle stands before."""
    _own_handle, *lines = results(model.requests[-1])[-1].split("\n")
    return [line.split(", ")[0] for line in lines if line.startswith(("@", "m-"))]


def test_a_new_session_finds_what_another_has_built_and_opens_it(pi: Pi, asked: Asked) -> None:
    pi.serve([call("write", path="login.ts", content=SOURCE), "LoginSchema is in login.ts now."])
    assert pi.print("go", foredeck=True).code == 0
    asked("memory", "add", "The user never wants LoginSchema renamed.")

    def activate_first(_: object) -> object:
        return call("activate", id=hits(second)[0])

    second = pi.serve(
        [
            call("memory-search", query="LoginSchema", type="toolcall"),
            activate_first,
            call("memory-search", query="where is LoginSchema now", type="message"),
            activate_first,
            call("memory-search", query="LoginSchema renamed"),
            activate_first,
            call("memory-search", query="zzqxv"),
            call("memory-search", query=" "),
            "done",
        ]
    )
    assert pi.print("go", foredeck=True).code == 0
    calls, shown, messages, message, all_of_it, entry, nothing, refused = results(
        second.requests[-1]
    )
    assert "login.ts [loginschema]" in calls
    assert "«LoginSchema» = 1" in calls
    assert "LoginSchema = 1" in shown
    assert 'In "go":' in messages
    assert "«LoginSchema» is in «login».ts «now»." in messages
    assert "--- assistant\nLoginSchema is in login.ts now." in message
    assert "memory preference, rank 1 [loginschema, renamed]" in all_of_it
    assert "write, login.ts, rank 3 [loginschema]: export const «LoginSchema» = 1;" in all_of_it
    assert "[user-stated] [preference] The user never wants LoginSchema renamed." in entry
    assert nothing.startswith("Nothing found in this project.")
    assert 'needs "query"' in refused
