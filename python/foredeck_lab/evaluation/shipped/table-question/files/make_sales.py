"""Writes sales.csv: 600 lines, the same each time."""

with open("sales.csv", "w") as file:
    file.write("day,shop,item,pieces,cents\n")
    number = 7
    for line in range(600):
        number = (number * 1103515245 + 12345) % 2**31
        shop = ("harbour", "market", "station")[number // 65536 % 3]
        item = ("rope", "lamp", "chart", "knife")[number // 262144 % 4]
        pieces = number // 1048576 % 9 - 1
        file.write(f"2026-0{line // 100 + 1}-{line % 28 + 1:02d},{shop},{item},{pieces},{250 + pieces * 5}\n")
