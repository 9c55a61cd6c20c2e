// What the recorded sessions use beside Pi: a tool that `tool_search` finds, and `/goto ENTRY`.
export default function (pi) {
  pi.registerTool({
    name: "stock_level",
    label: "stock_level",
    description: "How many of an item are in stock, by its number.",
    exposure: "deferred",
    parameters: { type: "object", properties: { sku: { type: "string" } }, required: ["sku"] },
    execute: async (_id, { sku }) => ({
      content: [{ type: "text", text: `${sku}: 12 in stock, 3 reserved` }],
      details: {},
    }),
  });
  pi.registerCommand("goto", {
    description: "navigate to an entry",
    handler: async (id, ctx) => {
      await ctx.navigateTree(id.trim(), { summarize: false });
    },
  });
}
