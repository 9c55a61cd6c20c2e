"""Tasks through the real Pi: planned and closed in one session, found in the next."""

from __future__ import annotations

import re

from foredeck_bench.twin.script import ModelRequest, Script, ToolCall, call
from foredeck_bench.twin.server import ScriptedModel
from harness import Pi
from observed import command_text, notified, results

SOURCE = "export const LoginSchema = 1;\n" + "".join(f"// line {n}\n" for n in range(40))
TASK_TOOLS = {"task-query", "task-mutate"}
WITH_TASKS = {"FOREDECK_TOOLS__TASKS": "on"}


def run(pi: Pi, script: Script, **environment: str) -> ScriptedModel:
    """A session of its own, in print mode; it must end well and be refused nothing."""
    model = pi.serve(script)
    ended = pi.print("go", foredeck=True, environment=environment)
    assert (ended.code, ended.stderr) == (0, "")
    assert model.steps_left == 0
    return model


def declared(model: ScriptedModel) -> set[str]:
    """The tools that every request of a session has declared."""
    bodies = [recorded.request.body for recorded in model.requests]
    names = {tuple(tool["name"] for tool in body["tools"]) for body in bodies}
    assert len(names) == 1
    return set(names.pop())


def test_a_session_plans_and_closes_and_the_next_finds_it_and_does_not_begin_again(pi: Pi) -> None:
    names: list[str] = []

    def named(request: ModelRequest) -> str:
        """The task that the last result names."""
        found = re.findall(r"\bt-\w+", list(request.results.values())[-1])
        names.extend(found[:1])
        return names[-1]

    def close(request: ModelRequest) -> ToolCall:
        del request
        summary = "LoginSchema in login.ts checks the address."
        return call("task-mutate", action="close", id=names[0], reason="completed", summary=summary)

    assert TASK_TOOLS.isdisjoint(declared(run(pi, ["hello"], **WITH_TASKS)))
    first = run(
        pi,
        [
            call("task-mutate", action="create", title="Build the login form", priority=1),
            lambda request: call(
                "task-mutate", action="create", title="Test the login", dependsOn=named(request)
            ),
            lambda _: call("task-mutate", action="claim", id=names[0]),
            call("write", path="login.ts", content=SOURCE),
            close,
            lambda _: call("task-mutate", action="claim", id=names[0]),
            "The login form is built; its test is left.",
        ],
    )
    assert declared(first) >= TASK_TOOLS
    created, _, claimed, _, closed, again = results(first.requests[-1])
    assert "Build the login form" in created
    assert "Claimed: " in claimed
    assert "Ready now:" in closed
    assert "closed" in again

    second = run(
        pi,
        [
            call("memory-search", query="login form LoginSchema"),
            call("task-query", action="ready"),
            call("task-query", action="list", status="closed"),
            lambda _: call("task-mutate", action="claim", id=names[0]),
            "The form is there already: only the test is left.",
        ],
    )
    assert declared(second) >= TASK_TOOLS  # the project holds tasks: no setting any more
    found, ready, done, refused = results(second.requests[-1])
    assert "login.ts" in found
    assert "Test the login" in ready
    assert "Build the login form" not in ready
    assert "LoginSchema in login.ts checks the address." in done
    assert "closed" in refused


def test_the_users_commands_and_the_widget(pi: Pi) -> None:
    pi.serve(["hello"])
    rpc = pi.rpc("hi", foredeck=True)
    rpc.command("/tasks new Fix the login --priority 1 --type bug")
    (made,) = notified(rpc)
    assert " P1 bug: Fix the login" in made
    name = re.findall(r"\bt-\w+", made)[0]
    rpc.command(f"/tasks claim {name}")
    assert "Fix the login" in command_text(rpc, "/tasks")
    rpc.command(f"/tasks close {name} It works again.")
    assert "summary: It works again." in command_text(rpc, f"/tasks show {name}")
    assert f"{name} P1 bug: Fix the login" in command_text(rpc, f"/tasks open {name}")
    for wrong in ("new", "close", f"close {name}", "claim"):
        rpc.command(f"/tasks {wrong}")
        assert notified(rpc)[-1].startswith("Say "), "no JSON, and no name of a tool"
    assert command_text(rpc, "/tasks close nothing At all.").startswith("Task not found: nothing")
    assert "  user  [hi]\n" in command_text(rpc, "/search hi")
    assert "activate" not in notified(rpc)[-1]
    assert "no task tools in this project" in command_text(rpc, "/tasks off")
    lines = [event.get("widgetLines") for event in rpc.events if event.get("method") == "setWidget"]
    assert lines[0] == ["1 ready, 0 blocked."]
    assert lines[1] == [f"{name} Fix the login · 0 ready, 0 blocked, 1 in progress."]


def test_off_keeps_the_tools_away_and_commands_in_print_mode_do_no_harm(pi: Pi) -> None:
    pi.serve([])
    made = pi.print("/tasks new Fix the login", foredeck=True)
    assert (made.code, "Fix the login" in made.stderr + made.stdout) == (0, True)
    assert pi.print("/tasks off", foredeck=True).code == 0
    assert TASK_TOOLS.isdisjoint(declared(run(pi, ["hello"])))
    assert pi.print("/tasks on", foredeck=True).code == 0
    assert declared(run(pi, ["hello"])) >= TASK_TOOLS
