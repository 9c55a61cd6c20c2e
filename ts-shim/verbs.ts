/** What can be typed: the verbs of each command, with what they take and do. */

export const VERBS: Record<string, Record<string, string>> = {
  foredeck: {
    list: "the files and results in this chat and their state, as text",
    context: "the same as /foredeck, the largest first",
    tasks: "the project's tasks; /foredeck tasks help",
    memory: "what foredeck remembers; /foredeck memory help",
    search: "WORDS: what was said, done and read in this project's sessions",
    open: "@N: the content of an object",
    pin: "@N: keep an object in view",
    unpin: "@N: let a pinned object fold again",
    fold: "@N: fold an object when the prompt is next rewritten",
    name: "@N NAME: give an object a nickname",
    describe: "@N [TEXT]: what stands for an object while it is folded; sets it",
    why: "[@N | --verbose]: why an object is in view or folded; why the prompt last changed",
    cost: "what this session has cost so far, and would have without foredeck",
    observe: "[yes | status | reflect | mode NAME]: note down now what was said and done",
    compact: "[--preview | --calls A-B]: what the newest compaction left out",
    uncompact: "take the newest compaction of this branch back",
    trace: "TEXT: at which calls the model could see a text, and where",
    private: "before the first message: nothing said in this session is kept or found outside it",
    rewind: "[N]: bring files back to what they were at call N",
    doctor: "[ask]: whether a model can be asked for foredeck, and at what price",
    off: "send everything as Pi has it, until switched on",
    on: "manage the context again",
    setup: "set the Python engine up now",
    ui: "open the inspector in the browser: all that is stored; it ends with Pi",
    command: "put the foredeck command on your PATH",
    help: "this list",
  },
  tasks: {
    list: "the project's tasks, as text",
    new: "TITLE [--priority 0-4]: make a task; 0 is the most urgent",
    claim: "TASK: take it for this session; what is said from now on belongs to it",
    close: "TASK SUMMARY: it is done, and this came of it",
    open: "TASK: open a closed task again, or give back one that is claimed",
    show: "TASK: all about one",
    on: "the model has its task tools in this project, from the next session on",
    off: "it has them no longer",
    help: "this list",
  },
  memory: {
    list: "[TAG]: what is remembered of you, your projects and this session, as text",
    inbox: "what waits for your word, as text",
    findings: "[TAG]: what was found in this session's data; on, off: the model's tool for it",
    show: "NAME: one entry, with the prompt that it came from",
    add: "[preference|decision|fact|context] TEXT: remember this",
    accept: "NAME [TEXT]: keep what waits, or TEXT in its place",
    replace: "NAME OTHER: keep what waits, in place of another entry",
    edit: "NAME TEXT: make an entry say this",
    refuse: "NAME: do not keep it, and do not ask again",
    pin: "NAME preference|decision: keep an entry of this session beyond it",
    demote: "NAME: make it a matter of this session alone",
    scope: "NAME everywhere|here: where it holds",
    confirm: "NAME: it still holds, although the code that it rests on has changed",
    delete: "NAME: take it out, with all that was made from it",
    help: "this list",
  },
  context: {},
  search: {},
};

/** The verbs of a command with what they take and do, for a person to read. */
export function helpOf(command: string): string {
  const verbs = Object.entries(VERBS[command] ?? {});
  const width = Math.max(...verbs.map(([verb]) => verb.length));
  const bare = `/${command}`.padEnd(`/${command} `.length + width);
  return [
    `${bare} opens a view; ↑ ↓ move in it, and it says its other keys`,
    ...verbs.map(([verb, text]) => `/${command} ${verb.padEnd(width)} ${text}`),
  ].join("\n");
}
