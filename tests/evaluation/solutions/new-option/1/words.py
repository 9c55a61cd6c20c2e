"""Counts the words of a file: python3 words.py FILE."""

import argparse
import json
from collections import Counter


def count(text):
    """How often each word stands in a text, in small letters."""
    return Counter(text.lower().split())


def main(argv=None):
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--top", type=int)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    with open(args.file) as file:
        found = count(file.read())
    chosen = found.most_common(args.top)
    if args.json:
        print(json.dumps(dict(chosen)))
        return
    for word, times in chosen:
        print(f"{times}\t{word}")


if __name__ == "__main__":
    main()
