/** This package on disk: where it lies, which version it is, what its Python sources hash to. */

import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readText } from "../files.ts";

/** The folder with package.json, ts-shim/ and python/. */
export const PACKAGE_ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The version in package.json; "0.0.0" where it cannot be read. */
export async function packageVersion(root: string = PACKAGE_ROOT): Promise<string> {
  try {
    const { version } = JSON.parse(await readText(join(root, "package.json")));
    return typeof version === "string" ? version : "0.0.0";
  } catch {
    return "0.0.0";
  }
}

/**
 * The name of the engine that this package installs: its version and a hash of what would be
 * installed, so that an update in place (a git pull) gets an engine of its own.
 */
export async function engineKey(root: string = PACKAGE_ROOT): Promise<string> {
  const hash = createHash("sha256");
  for (const path of ["pyproject.toml", "requirements.lock", ...(await pythonSources(root))]) {
    hash
      .update(path)
      .update("\0")
      .update(await readText(join(root, path)))
      .update("\0");
  }
  return `${await packageVersion(root)}-${hash.digest("hex").slice(0, 12)}`;
}

async function pythonSources(root: string): Promise<string[]> {
  const entries = await readdir(join(root, "python"), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !/\.pyc$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .map((path) => path.replaceAll("\\", "/").replace(/^\//, ""))
    .sort();
}
