import assert from "node:assert/strict";
import { test } from "node:test";
import { firesContextWithSystem, piModule } from "../host.ts";

test("context_with_system is used from 0.87.1 on, if the version is known", () => {
  for (const version of ["0.87.1", "0.87.2-dev", "0.88.0", "1.0.0", "1.5.2", "10.0.0"]) {
    assert.ok(firesContextWithSystem(version), version);
  }
  for (const version of ["0.87.0", "0.73.1", "0.9.99", "unknown", "", "x1.5.2"]) {
    assert.ok(!firesContextWithSystem(version), version);
  }
});

test("the installed version of Pi is found", async () => {
  assert.match((await piModule()).VERSION ?? "", /^\d+\.\d+\.\d+/);
});
