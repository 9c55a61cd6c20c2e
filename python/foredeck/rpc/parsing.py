"""The parameters of a request, from a JSON object to the model of its method."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from foredeck.hosts.protocol import JsonObject, Params
from foredeck.rpc.errors import InvalidParamsError

PROBLEMS_SHOWN = 3

P = TypeVar("P", bound=Params)


def parse_params(model: type[P], params: JsonObject) -> P:
    """The parameters. Raises InvalidParamsError that names the members at fault."""
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise InvalidParamsError(_explain(error)) from None


def _explain(error: ValidationError) -> str:
    """Which members are wrong and how, but never their values: they may be private."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    shown = [
        f"{'.'.join(map(str, problem['loc'])) or 'params'}: {problem['msg']}"
        for problem in problems[:PROBLEMS_SHOWN]
    ]
    more = len(problems) - len(shown)
    return "Invalid params: " + "; ".join(shown) + (f"; and {more} more" if more else "")
