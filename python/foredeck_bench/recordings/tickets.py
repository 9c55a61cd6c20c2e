"""An MCP server over stdio with one tool, which finds tickets."""

from __future__ import annotations

import json
import sys
from typing import Any

TOOL = {
    "name": "find",
    "description": "Find tickets of the stocktake project by a word.",
    "inputSchema": {
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
    },
}
FOUND = "ST-41 open: negative stock is valued as if it were there\nST-57 closed: rounding of totals"


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": params.get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "tickets", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": FOUND}]}
        case "ping":
            return {}
    return None


def main() -> None:
    """Answer requests until the client is gone."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params") or {})
        unknown = {"error": {"code": -32601, "message": "unknown method"}}
        body = unknown if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}), flush=True)


if __name__ == "__main__":
    main()
