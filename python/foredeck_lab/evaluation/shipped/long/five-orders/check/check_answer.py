import json

WANTED = {
    "o-4711": {"service": "taxes", "time": "13:55:18", "error": "E648"},
    "o-4802": {"service": "returns", "time": "13:42:27", "error": "E737"},
    "o-4919": {"service": "carrier", "time": "14:42:20", "error": "E623"},
    "o-5003": {"service": "queue", "time": "13:28:23", "error": "E275"},
    "o-5127": {"service": "carrier", "time": "14:08:18", "error": "E100"},
}
with open("answer.json") as file:
    said = json.load(file)
for order, wanted in WANTED.items():
    assert said.get(order) == wanted, f"{order}: {said.get(order)!r}"
