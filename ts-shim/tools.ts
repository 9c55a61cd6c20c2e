/** The model's tools, as tools.json has them: one that came or went would void a provider's cache. */

import { createHash } from "node:crypto";
import { realpath, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { ImageContent } from "@earendil-works/pi-ai";
import type {
  ExtensionAPI,
  ExtensionContext,
  ExtensionToolContext,
  ToolDefinition,
} from "@earendil-works/pi-coding-agent";
import { register, SHORTS } from "./command.ts";
import { type Fields, isRecord, isText } from "./context/messages.ts";
import { AbortedError, ErrorCode, RpcError } from "./engine/wire.ts";
import { readJson, stateDir } from "./files.ts";
import { visible } from "./host.ts";
import type { Shim } from "./shim.ts";
import definitions from "./tools.json" with { type: "json" };

/** How long the engine may take to keep what the user has confirmed. */
const CONFIRM_MS = 10_000;

/** A tool as the provider sees it; `facility`: with what it is switched on and off. */
interface ToolSpec {
  facility: string;
  name: string;
  description: string;
  parameters: ToolDefinition["parameters"];
}

/** What a tool answers, for the model to read, where the engine cannot. */
export const AWAY =
  "The context manager is not available right now. Go on without it: " +
  "use read or bash to see content again.";
const OFF = "The user has switched the context manager off: everything is in view as it is.";

export const TOOL_SPECS: readonly ToolSpec[] = definitions;

/** The names of foredeck's own tools: all but those that another extension has. */
export const TOOL_NAMES = new Set(TOOL_SPECS.map(({ name }) => name));

/** What is declared where the engine has left nothing, or nothing that can be read. */
export const DEFAULT_FACILITIES: readonly string[] = ["context", "search"];

/** Registers tools and short commands where their names are free, and says once which are not. */
export function registerNames(pi: ExtensionAPI, shim: Shim, facilities: readonly string[]): void {
  // Pi does not start where two extensions define the same tool, and gives both of two commands a
  // number (`/tasks:1`, `/tasks:2`). When the session begins, all extensions are loaded, and no
  // request has been sent: what the model has stays the same from there on.
  let isDone = false;
  pi.on("session_start", async () => {
    // Some of Pi's modes announce a session twice.
    if (isDone) return;
    isDone = true;
    const tools = new Set(pi.getAllTools().map(({ name }) => name));
    // Two that have the same name have a number each.
    const commands = new Set(pi.getCommands().map(({ name }) => name.replace(/:\d+$/, "")));
    const unavailable: string[] = [];
    for (const { facility, ...spec } of TOOL_SPECS) {
      const [isTaken, isWanted] = [tools.has(spec.name), facilities.includes(facility)];
      if (isTaken) TOOL_NAMES.delete(spec.name);
      if (isTaken && isWanted) unavailable.push(spec.name);
      else if (isWanted) pi.registerTool(toolOf(spec, shim));
    }
    const theirs = SHORTS.filter((name) => commands.has(name));
    for (const name of SHORTS) if (!commands.has(name)) register(pi, shim, name);
    const text = takenNotice(unavailable, theirs);
    if (text !== "" && (await isNews(text))) shim.host.notify("warning", text);
    // After the notice: in that, their names are meant, which the host replaces from now on.
    for (const name of theirs) shim.host.taken.add(name);
  });
}

function takenNotice(tools: readonly string[], commands: readonly string[]): string {
  const ask = (name: string) => `/${name} belongs to another extension: type /foredeck ${name}.`;
  const lines = commands.map(ask);
  const [it, are] = tools.length === 1 ? ["it", "tool is"] : ["them", "tools are"];
  if (tools.length > 0)
    lines.push(`The ${are} another extension's: ${tools.join(", ")}. foredeck goes without ${it}.`);
  return lines.join("\n");
}

/** Whether the user has not read these very words before. */
async function isNews(text: string): Promise<boolean> {
  const file = join(stateDir(), "names-told.json");
  if ((await readJson(file)).text === text) return false;
  // Where this fails it is said again.
  await writeFile(file, JSON.stringify({ text }), { mode: 0o600 }).catch(() => {});
  return true;
}

function toolOf(spec: Omit<ToolSpec, "facility">, shim: Shim): ToolDefinition {
  return {
    ...spec,
    label: spec.name,
    // Scripts of code mode cannot call it: Pi keeps no results of their calls, and with them not what
    // was decided.
    exposure: "model-only",
    async execute(id, input, signal, _onUpdate, ctx) {
      if (shim.isOff()) throw new Error(OFF);
      const call = { id, tool: spec.name, input };
      const isShowing = spec.name === "activate" || spec.name === "pin";
      const { reads } = isShowing ? await askAbout("tool/prepare", call, shim, signal) : {};
      if (isText(reads)) await mustBeReadable(reads, id, shim.api, ctx);
      const answer = await askAbout("tool/call", call, shim, signal);
      shim.host.showState(answer);
      const text = (await confirmed(answer.questions, shim, ctx)) ?? String(answer.text);
      const images = (answer.images ?? []) as ImageContent[];
      // `details` holds the engine's decision. It reads it back from the message list, so that the
      // decision follows the branch on which the call was made.
      return { content: [{ type: "text", text }, ...images], details: answer.details ?? {} };
    },
  };
}

/** One question to the engine about a call of ours. @throws what the model is to read */
async function askAbout(
  method: "tool/prepare" | "tool/call",
  call: { id: string; tool: string; input: unknown },
  shim: Shim,
  signal: AbortSignal | undefined,
): Promise<Fields> {
  try {
    // Not longer than a model call waits: an engine that hangs would hold up the agent at each tool.
    const limits = { deadlineMs: shim.engine.deadlineMs, signal };
    return await shim.engine.ask(method, call, limits, true);
  } catch (error) {
    const isTools = error instanceof RpcError && error.code === ErrorCode.tool;
    if (isTools || error instanceof AbortedError) throw error;
    shim.logError(call.tool, error);
    throw new Error(AWAY);
  }
}

/** Has Pi read a file that no `read` has shown: whatever decides about a `read` decides about this. */
async function mustBeReadable(
  path: string,
  toolCallId: string,
  pi: ExtensionAPI,
  ctx: ExtensionToolContext,
): Promise<void> {
  // Another extension's `read` may read something else under this path.
  if (!ctx.tools.some(({ name }) => name === "read") || replaced(pi).includes("read"))
    throw new Error(`No read has shown ${path} in this chat: use read.`);
  ASKING.add(toolCallId);
  const { isError, durationMs, result } = await ctx
    .executeTool("read", { path })
    .finally(() => ASKING.delete(toolCallId));
  if (!isError) return;
  // A `read` that ran and found no file refuses nothing: what is stored of the file can be shown.
  const isGone = durationMs !== undefined && !(await stat(path).catch(() => null));
  const said = result.content.map((block) => (block.type === "text" ? block.text : ""));
  if (!isGone) throw new Error(said.join(""));
}

/** Our calls that have a `read` run only to learn whether it may: the engine hears nothing of it. */
export const ASKING = new Set<string>();

/** These write nothing. */
export const READERS: ReadonlySet<string> = new Set(["read", "grep", "find", "ls"]);
/** The tools that come with Pi. */
const PI_TOOLS = [...READERS, "bash", "edit", "write"];
/** Sources of Pi's own tools, and of those that a program embedding Pi supplies. */
const PI_SOURCES = ["builtin", "sdk"];

/** Which of Pi's own tools another extension has replaced. */
export function replaced(pi: ExtensionAPI): string[] {
  const active = pi.getActiveTools().filter((name) => PI_TOOLS.includes(name));
  const others = pi.getAllTools().filter((tool) => !PI_SOURCES.includes(tool.sourceInfo.source));
  return others.map(({ name }) => name).filter((name) => active.includes(name));
}

/** Asks the user about the first of an answer's questions; what the model reads then, if asked. */
async function confirmed(
  questions: unknown,
  shim: Shim,
  ctx: ExtensionContext,
): Promise<string | undefined> {
  const [question] = Array.isArray(questions) ? questions.filter(isRecord) : [];
  if (!Array.isArray(question?.lines) || !ctx.hasUI) return undefined;
  const wanted = await ctx.ui.confirm("Keep this finding?", visible(question.lines.join("\n")));
  const args = `${wanted ? "accept" : "refuse"} ${question.name}`;
  const limits = { deadlineMs: CONFIRM_MS };
  const { text } = await shim.ask("command", { name: "memory", args }, limits);
  if (text === undefined) return undefined;
  return wanted ? "Kept: the user has confirmed it." : "The user does not want it kept.";
}

/** Facilities of a session that is reloaded or forked: the prompts of the next begin the same way. */
const KEPT = Symbol.for("foredeck.facilities");
const kept = globalThis as { [KEPT]?: readonly string[] | undefined };

/** The facilities whose tools the sessions in a folder declare. Never rejects. */
export async function declaredFacilities(state: string, cwd: string): Promise<readonly string[]> {
  const before = kept[KEPT];
  kept[KEPT] = undefined;
  if (before) return before;
  // What the engine has left there: tools are registered before any engine runs.
  const { facilities } = await readJson(join(state, "switches", `${await folderKey(cwd)}.json`));
  return Array.isArray(facilities) ? facilities : DEFAULT_FACILITIES;
}

/** Declares the same tools in the next instance, unless that one serves a session of its own. */
export function keepFacilities(reason: string, facilities: readonly string[]): void {
  kept[KEPT] = reason === "reload" || reason === "fork" ? facilities : undefined;
}

/** Names a folder's file, whichever link leads there. */
export async function folderKey(cwd: string): Promise<string> {
  const path = resolve(cwd);
  const real = await realpath(path).catch(() => path);
  return createHash("sha256").update(real).digest("hex").slice(0, 32);
}
