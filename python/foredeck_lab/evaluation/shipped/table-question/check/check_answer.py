import csv

with open("sales.csv") as file:
    rows = [row for row in csv.DictReader(file) if row["shop"] == "market" and row["item"] == "lamp"]
sold = sum(int(row["pieces"]) * int(row["cents"]) for row in rows if int(row["pieces"]) > 0)
with open("answer.txt") as file:
    said = file.read().strip()
assert said == str(sold), f"answer.txt has {said!r}"
