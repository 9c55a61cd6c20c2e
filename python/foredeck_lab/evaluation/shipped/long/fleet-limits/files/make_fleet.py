"""Writes fleet/: 26 modules on kinds of ships."""

from pathlib import Path

KINDS = (
    "barge brig canoe carrack clipper cog corvette cutter dhow dinghy ferry frigate galleon gondola "
    "hulk junk kayak ketch lugger packet schooner sloop tanker trawler tug yawl"
).split()
TOWNS = "Aalborg Bergen Cadiz Dundee Emden Ferrol Gdansk Hull Izola Kiel Lorient Malmo Nantes".split()
LIMITS = (
    '"""A {kind} never takes more than {limit} people."""\n',
    "CREW_OF_A_{upper} = {limit}\n",
    "ROOM = {{'passengers': 4, 'crew': {limit}, 'pilots': 1}}\n",
    "# By the rules of the harbour the crew of a {kind} ends at {limit}.\n",
)
FILLER = '''

def {kind}_{at}(distance: float, wind: int) -> float:
    """Hours of a {kind} over that distance in leg {at} of its route."""
    speed = {speed} - wind % {turn} * 0.{at}
    if distance < {near}:
        return distance / max(speed, 1.5)
    return distance / max(speed - {slow}, 1.0) + {wait}
'''

fleet = Path("fleet")
fleet.mkdir()
(fleet / "__init__.py").write_text("")
for number, kind in enumerate(KINDS):
    town = TOWNS[number * 5 % len(TOWNS)]
    text = f'"""Of the {kind}, as the yard of {town} builds it."""\n'
    limit = LIMITS[number % 4].format(kind=kind, upper=kind.upper(), limit=number * 37 % 61 + 5)
    for at in range(12):
        if at == 3 + number % 7:
            text += f"\n\n{limit}"
        text += FILLER.format(
            kind=kind,
            at=at,
            speed=7 + (number + at) % 9,
            turn=2 + at % 5,
            near=20 + number * at,
            slow=at % 3,
            wait=number % 6,
        )
    (fleet / f"{kind}.py").write_text(text)
