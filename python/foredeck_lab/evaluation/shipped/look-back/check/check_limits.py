import json
import pathlib
import re

found = {
    path.stem: int(match[1])
    for path in pathlib.Path("fleet").glob("*.py")
    if (match := re.search(r"^MOST_\w+ = (\d+)$", path.read_text(), re.MULTILINE))
}
assert len(found) == 6
assert json.loads(pathlib.Path("limits.json").read_text()) == found
readme = pathlib.Path("README.md").read_text()
assert all(name in readme for name in found), "README.md lacks a module"
