// Runs the host's own tools. Argument: the module that exports them. Each line of stdin is
// {"tool", "input", "cwd", "files"?}, each line of stdout its {"text", "details", "error"}.
// "files" stands in for what `find` would find, as the host lets an extension do.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const host = await import(pathToFileURL(process.argv[2]).href);
const makers = {
  bash: host.createBashTool,
  edit: host.createEditTool,
  find: host.createFindTool,
  grep: host.createGrepTool,
  ls: host.createLsTool,
  read: host.createReadTool,
  write: host.createWriteTool,
};

async function run({ tool, input, cwd, files }) {
  const operations = files && { exists: () => true, glob: (_pattern, _folder, { limit }) => files.slice(0, limit) };
  const made = makers[tool](cwd, operations && { operations });
  const prepared = made.prepareArguments ? made.prepareArguments(input) : input;
  try {
    const result = await made.execute("call", prepared);
    const text = result.content.map((block) => block.text ?? "").join("");
    return { text, details: result.details, error: result.isError ?? false };
  } catch (error) {
    return { text: error.message, error: true };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line)))}\n`);
}
