"""Writes desk/: thirty modules that answer requests, each in one of five ways."""

from pathlib import Path

NAMES = (
    "accounts alarms badges bills books cards cases clients contracts coupons desks doors files "
    "forms guests invoices keys labels letters lockers meals notes orders parcels permits plans "
    "rooms tickets tours visits"
).split()

HANDLERS = (
    '''    if "id" not in request:
        return 404, "{name}: unknown"
    return 200, f"{name} {{request['id'] * FACTOR}}"
''',
    '''    if "id" not in request:
        return (404, "{name}: unknown")
    found = request["id"] * FACTOR
    if found < 0:
        return (400, f"{name}: {{found}} is below zero")
    return (200, f"{name} {{found}}")
''',
    '''    answer = 404, "{name}: unknown"
    if "id" in request:
        answer = 200, f"{name} {{request['id'] * FACTOR}}"
    return answer
''',
    '''    status, body = 404, "{name}: unknown"
    if "id" in request:
        status, body = 200, f"{name} {{request['id'] * FACTOR}}"
    return status, body
''',
    '''    try:
        return 200, f"{name} {{request['id'] * FACTOR}}"
    except KeyError:
        return 404, "{name}: unknown"
''',
)
USES = (
    "    status, body = {other}.handle_{other}(request)\n    return f'{{status}}:{{body}}'\n",
    "    got = {other}.handle_{other}(request)\n    return f'{{got[0]}}:{{got[1]}}'\n",
    "    return ':'.join(map(str, {other}.handle_{other}(request)))\n",
)
TALLY = '''

def tally_{at}(values: list[int]) -> int:
    """The sum of those of the values that {name} counts in step {at}."""
    total = 0
    for place, value in enumerate(values):
        if value % {step} == {rest}:
            total += value * {weight}
        elif place > {most}:
            break
    return total
'''

desk = Path("desk")
desk.mkdir()
(desk / "__init__.py").write_text("")
for number, name in enumerate(NAMES):
    other = NAMES[(number + 7) % len(NAMES)]
    text = f'"""What the desk knows of {name}."""\n\nFACTOR = {number + 3}\n'
    for at in range(14):
        step = 2 + (number * 5 + at) % 9
        weight, most = 1 + (number + at) % 4, 10 + number * at
        text += TALLY.format(
            at=at, name=name, step=step, rest=at % step, weight=weight, most=most
        )
        if at == 9:
            text += f"\n\ndef handle_{name}(request: dict):\n"
            text += HANDLERS[number * 3 % 5].format(name=name)
    text += f"\n\ndef peek_{name}(request: dict) -> str:\n    from desk import {other}\n\n"
    (desk / f"{name}.py").write_text(text + USES[number % 3].format(other=other))
