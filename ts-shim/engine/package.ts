/** This package on disk: where it lies, which version it is, what its Python sources hash to. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder with package.json, ts-shim/ and python/. */
export const PACKAGE_ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The version in package.json; "0.0.0" where it cannot be read. */
export function packageVersion(root: string = PACKAGE_ROOT): string {
  try {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    return typeof version === "string" ? version : "0.0.0";
  } catch {
    return "0.0.0";
  }
}

/**
 * The name of the engine that this package installs: its version and a hash of what would be
 * installed, so that an update in place (a git pull) gets an engine of its own.
 */
export function engineKey(root: string = PACKAGE_ROOT): string {
  const hash = createHash("sha256");
  for (const path of ["pyproject.toml", ...pythonSources(root)]) {
    hash
      .update(path)
      .update("\0")
      .update(readFileSync(join(root, path)))
      .update("\0");
  }
  return `${packageVersion(root)}-${hash.digest("hex").slice(0, 12)}`;
}

function pythonSources(root: string): string[] {
  return readdirSync(join(root, "python"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.pyc$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .map((path) => path.replaceAll("\\", "/").replace(/^\//, ""))
    .sort();
}
