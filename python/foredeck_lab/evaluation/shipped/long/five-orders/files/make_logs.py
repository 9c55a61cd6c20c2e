"""Writes logs/: twenty services, 700 lines each, the same each time."""

from pathlib import Path

SERVICES = (
    "gateway basket stock prices taxes coupons ledger billing cards refunds fraud queue mailer "
    "packing labels routes carrier customs returns archive"
).split()
ORDERS = ("o-4711", "o-4802", "o-4919", "o-5003", "o-5127")
WORDS = (
    "{id} handed to {next}, which calls it {new}",
    "forwarded: {new}@{next} (was {id})",
    "{next} accepted {id} as {new}",
    "job {id} done, successor {new} in {next}",
    "sent {id} on; {next} answered with ticket {new}",
)
state = 11


def draw(most: int) -> int:
    global state
    state = (state * 1103515245 + 12345) % 2**31
    return state // 65536 % most


def fresh_id() -> str:
    return f"{'abcdefghkmnp'[draw(12)]}{draw(30000):05d}"


def clock(line: int) -> str:
    return f"{8 + line // 60:02d}:{line % 60:02d}:{draw(60):02d}"


logs = {}
for service in SERVICES:
    lines = []
    for line in range(700):
        words = WORDS[draw(5)].format(id=fresh_id(), next=SERVICES[1 + draw(19)], new=fresh_id())
        said = words if draw(3) else f"{fresh_id()} took {draw(900)} ms, cache {draw(100)}% full"
        lines.append(f"{clock(line)} INFO {said}")
    logs[service] = lines
for order in ORDERS:
    id, at, line = order, 0, 20 + draw(40)
    for hop in range(9):
        new = fresh_id()
        to = 1 + (at + 2 + draw(16)) % 19
        words = WORDS[draw(5)].format(id=id, next=SERVICES[to], new=new)
        logs[SERVICES[at]][line] = f"{clock(line)} INFO {words}"
        id, at, line = new, to, line + 10 + draw(50)
    code = f"E{100 + draw(800)}"
    logs[SERVICES[at]][line] = f"{clock(line)} INFO {id} is being worked on"
    logs[SERVICES[at]][line + 9] = f"{clock(line + 9)} ERROR {id} failed with {code}, gave up"
    logs[SERVICES[at]][line + 17] = f"{clock(line + 17)} WARN {id} taken up again"
Path("logs").mkdir()
for service, lines in logs.items():
    Path("logs", f"{service}.log").write_text("".join(f"{line}\n" for line in lines))
