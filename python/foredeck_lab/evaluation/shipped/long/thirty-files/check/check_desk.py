import re
from importlib import import_module
from pathlib import Path

RETURNS = (2, 3, 1, 1, 2)

from desk.reply import Reply

names = sorted(path.stem for path in Path("desk").glob("*.py") if path.stem not in ("__init__", "reply"))
assert len(names) == 30, names
changes = dict(re.findall(r"(\w+)\.py`?\s*:\s*(\d+)", Path("CHANGES.md").read_text()))
for number, name in enumerate(names):
    module = import_module(f"desk.{name}")
    handle = getattr(module, f"handle_{name}")
    found, none = handle({"id": 5}), handle({})
    assert isinstance(found, Reply) and isinstance(none, Reply), name
    assert (found.status, found.body) == (200, f"{name} {5 * (number + 3)}"), name
    assert (none.status, none.body) == (404, f"{name}: unknown"), name
    try:
        first, second = found
        raise SystemExit("a Reply can be unpacked")
    except TypeError:
        pass
    other = names[(number + 7) % 30]
    said = getattr(module, f"peek_{name}")({"id": 2})
    assert said == f"200:{other} {2 * ((number + 7) % 30 + 3)}", (name, said)
    assert changes.get(name) == str(RETURNS[number * 3 % 5]), (name, changes.get(name))
