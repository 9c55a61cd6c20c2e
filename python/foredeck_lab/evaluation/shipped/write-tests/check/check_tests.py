import subprocess
import sys

RIGHT = open("bounds.py").read()
MISTAKES = (
    ("max(low, min(value, high))", "max(low, value)"),
    ("max(low, min(value, high))", "min(value, high)"),
    ("if low > high:", "if low >= high:"),
    ("0 if whole == 0 else 100 * part // whole", "100 * part // (whole or 1) if part else 0"),
    ("100 * part // whole", "round(100 * part / whole)"),
)


def passes(code):
    with open("bounds.py", "w") as file:
        file.write(code)
    command = [sys.executable, "-B", "-m", "unittest", "-q", "test_bounds"]
    return subprocess.run(command, capture_output=True).returncode == 0


assert passes(RIGHT), "the tests fail although the code is right"
for old, new in MISTAKES:
    assert old in RIGHT
    assert not passes(RIGHT.replace(old, new)), f"not noticed: {new}"
