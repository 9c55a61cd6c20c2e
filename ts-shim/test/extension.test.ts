import assert from "node:assert/strict";
import { test } from "node:test";
import foredeck from "../index.ts";
import { recorder } from "./support/pi.ts";

test("loading registers everything, once, and starts nothing", async () => {
  const { pi, events, tools, commands } = recorder();
  await foredeck(pi);
  assert.deepEqual([Object.keys(tools), Object.keys(commands)], [[], ["foredeck"]]);
  await events.session_start?.[1]?.();
  assert.deepEqual(Object.keys(tools), ["activate", "deactivate", "pin", "unpin", "memory-search"]);
  assert.deepEqual(Object.keys(commands), ["foredeck", "context", "tasks", "search", "memory"]);
  assert.equal(events.context_with_system?.length, 1);
  assert.equal(events.context, undefined);
  const twice = Object.keys(events).filter((name) => events[name]?.length !== 1);
  const shared = ["session_shutdown", "session_start", "turn_end"]; // two to serve
  assert.deepEqual(twice.sort(), shared);
});

test("a second copy registers nothing and says so once", async () => {
  const { pi, events } = recorder();
  await foredeck(pi);
  const registered = Object.keys(events).length;
  await foredeck(pi);
  assert.equal(Object.keys(events).length, registered);
  const [, , second] = events.session_start ?? [];
  const notices: string[] = [];
  const ctx = { hasUI: true, ui: { notify: (text: string) => notices.push(text) } };
  for (const _ of [1, 2]) second?.({}, ctx);
  assert.equal(notices.length, 1);
  assert.match(notices[0] ?? "", /loaded twice.*index\.ts does nothing beside .*index\.ts/);
});
