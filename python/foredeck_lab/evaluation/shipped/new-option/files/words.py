"""Counts the words of a file: python3 words.py FILE."""

import argparse
from collections import Counter


def count(text):
    """How often each word stands in a text, in small letters."""
    return Counter(text.lower().split())


def main(argv=None):
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    args = parser.parse_args(argv)
    with open(args.file) as file:
        found = count(file.read())
    for word, times in found.most_common():
        print(f"{times}\t{word}")


if __name__ == "__main__":
    main()
