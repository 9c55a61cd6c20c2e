import assert from "node:assert/strict";
import { test } from "node:test";
import { registerRefused } from "../context/provider.ts";
import { recorder, registered } from "./support/pi.ts";

const failure = (errorMessage: string) => ({
  role: "assistant",
  stopReason: "error",
  errorMessage,
});

async function start() {
  const { harness } = registered("good");
  await harness.shim.engine.whenReady();
  const { pi, fire } = recorder();
  registerRefused(pi, harness.shim);
  const end = (message: object, messageEntryId = "e7") =>
    fire("turn_end", { message, messageEntryId });
  const settle = (outcome = "error") =>
    fire("agent_before_settle", { outcome, entries: [{ type: "custom", customType: "x" }] });
  return { end, settle, harness, asked: () => harness.requests("context/refused").length };
}

test("where the engine has another prompt the call is made again, without the failed answer", async () => {
  const { end, settle } = await start();
  end(failure("again"));
  const edit = { type: "context_edit", targetId: "e7", replacement: null };
  assert.deepEqual(await settle(), {
    entries: [{ type: "custom", customType: "x" }, edit],
    continue: true,
  });
  assert.equal(await settle(), undefined, "once for each failure");
});

test("where it has none, fails or talks nonsense the run ends as it would", async () => {
  const { end, settle, asked } = await start();
  for (const message of ["no", "fail", "nonsense"]) {
    end(failure(message));
    assert.equal(await settle(), undefined);
  }
  assert.equal(asked(), 3);
});

test("it is asked of answers that failed, and only while foredeck is on", async () => {
  const { end, settle, asked, harness } = await start();
  end({ role: "assistant", stopReason: "stop" });
  await settle("completed");
  end(failure("again"));
  await settle("aborted");
  end(failure("again"));
  end({ role: "assistant", stopReason: "toolUse" });
  await settle();
  end(failure("again"), "");
  await settle();
  harness.shim.switchOff();
  end(failure("again"));
  await settle();
  harness.shim.switchOn();
  assert.equal(asked(), 0);
});
