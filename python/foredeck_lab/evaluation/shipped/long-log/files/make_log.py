"""Writes server.log: 900 lines, the same each time."""

with open("server.log", "w") as file:
    number = 3
    for line in range(900):
        number = (number * 1103515245 + 12345) % 2**31
        request = f"r{number % 100000:05d}"
        said = f"INFO request {request} answered in {number // 65536 % 400} ms"
        if line == 522:
            said = "WARN pool restarted after 3 failures"
        elif line in (88, 301, 547, 548, 700):
            said = f"ERROR request {request} failed: connection reset by {line % 7}.example"
        file.write(f"12:{line // 60:02d}:{line % 60:02d} {said}\n")
