"""The real engine; only that `/foredeck doctor` asks the model what a file says.

    python asking_engine.py FILE

FILE holds `{"question": {...}, "timeout_s": 60}`: the parameters of `host/complete`. What the user
reads is the answer as JSON, or `{"error": ..., "text": ..., "usage": ...}` with the error's name.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from foredeck.cli.main import main
from foredeck.errors import ForedeckError
from foredeck.hosts.host import CompleteParams
from foredeck.rpc import server
from foredeck.rpc.host_model import HostModel


async def ask_from_file(models: HostModel, **_others: object) -> str:
    """In the place of `examine`."""
    given = json.loads(Path(sys.argv[1]).read_text())
    question = CompleteParams.model_validate(given["question"])
    try:
        answer = await models.ask(question, timeout_s=given.get("timeout_s", 60))
    except ForedeckError as error:
        usage = getattr(error, "usage", None)
        said = {"error": type(error).__name__, "text": str(error)}
        return json.dumps({**said, "usage": usage and usage.model_dump()})
    return answer.model_dump_json()


if __name__ == "__main__":
    server.examine = ask_from_file
    sys.exit(main(["engine"]))
