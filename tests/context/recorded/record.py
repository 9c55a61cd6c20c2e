"""Records what real commands put out, for the snapshots of digests.

usage: python tests/context/recorded/record.py

Makes a small repository in a scratch folder, runs each command of `COMMANDS` in it, and writes
NAME.txt beside this file: the command, then its output as Pi's bash tool gives it. Needs git, node,
npm and tsc (`node_modules/.bin`), and the development tools of `.venv`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

COMMANDS = {
    "git_status": "git status",
    "git_status_short": "git status --short --branch",
    "git_diff": "git diff",
    "git_show_stat": "git show --stat HEAD",
    "git_log": "git log",
    "git_log_oneline": "git log --oneline",
    "search": "grep -rn load_ src test",
    "search_in_one_file": "grep -n total src/store/orders.py",
    "listing": "find . -name '*.py' -not -path './.git/*'",
    "long_listing": "ls -la src/store",
    "file_of_code": "cat src/store/orders.py",
    "numbered_lines": "nl -ba src/store/orders.py | sed -n '10,40p'",
    "markdown": "cat README.md",
    "json": "cat package.json",
    "json_array": "cat orders.json",
    "json_lines": "cat events.jsonl",
    "pytest": "python -m pytest -p no:cacheprovider -p no:asyncio test",
    "unittest": "python -m unittest discover -s test -p 'test_*.py'",
    "node_test": "node --test web/sum.test.mjs",
    "tsc": "tsc --noEmit --pretty false web/orders.ts",
    "mypy": "python -m mypy --cache-dir /dev/null src/store/orders.py src/store/unused.py",
    "ruff": "python -m ruff check --no-cache --output-format concise src",
    "python_trace": "python src/main.py",
    "node_trace": "node web/main.mjs",
    "npm_install": "npm install --no-audit --no-fund ./web/lib",
    "exit_code": "ls missing-folder",
}

ORDERS = '''"""Orders of a shop."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

TAX_RATE = 0.19


@dataclass
class OrderLine:
    sku: str
    quantity: int
    unit_price: float

    def total(self) -> float:
        return self.quantity * self.unit_price


class OrderBook:
    def __init__(self) -> None:
        self.by_number: dict[str, list[OrderLine]] = {}

    def load_file(self, path: Path) -> None:
        for number, lines in json.loads(path.read_text()).items():
            self.by_number[number] = [OrderLine(**line) for line in lines]

    def total(self, number: str) -> float:
        return sum(line.total() for line in self.by_number[number])

    def with_tax(self, number: str) -> str:
        return self.total(number) * (1 + TAX_RATE)
'''

FILES = {
    "README.md": "# Shop\n\nOrders and their totals.\n\n## Install\n\nRun `npm install`.\n\n"
    "## Use\n\nSee src/main.py.\n\n### Taxes\n\nThe rate is TAX_RATE.\n",
    "package.json": json.dumps(
        {"name": "shop", "version": "1.4.0", "private": True, "scripts": {"test": "node --test"}},
        indent=2,
    ),
    "orders.json": json.dumps(
        [{"number": f"A-10{n}", "skuCode": f"sku_{n}", "quantity": n} for n in range(20)], indent=1
    ),
    "events.jsonl": "".join(
        json.dumps({"type": "orderPlaced", "orderNumber": f"A-10{n}", "at": 1700000000 + n}) + "\n"
        for n in range(12)
    ),
    "src/store/__init__.py": "",
    "src/store/orders.py": ORDERS,
    "src/store/unused.py": "import os\nimport sys\n\n\ndef load_nothing():\n    x: str = 1\n",
    "src/main.py": "from pathlib import Path\n\nfrom store.orders import OrderBook\n\n"
    "book = OrderBook()\nbook.load_file(Path(__file__).parents[1] / 'empty.json')\n"
    "print(book.total('A-999'))\n",
    "empty.json": "{}\n",
    "test/test_orders.py": "import sys\nimport unittest\nfrom pathlib import Path\n\n"
    "sys.path.insert(0, str(Path(__file__).parents[1] / 'src'))\n"
    "from store.orders import OrderBook, OrderLine\n\n\n"
    "class OrderTest(unittest.TestCase):\n"
    "    def test_total_of_a_line(self):\n"
    "        assert OrderLine('sku_1', 2, 1.5).total() == 3\n\n"
    "    def test_total_of_a_book(self):\n"
    "        book = OrderBook()\n"
    "        book.by_number['A-1'] = [OrderLine('sku_1', 1, 2.0)]\n"
    "        self.assertEqual(book.total('A-1'), 2)\n\n"
    "    def test_an_unknown_number(self):\n"
    "        self.assertEqual(OrderBook().total('A-2'), 0)\n",
    "web/orders.ts": "interface Order {\n  orderNumber: string;\n  lineCount: number;\n}\n\n"
    "export function describeOrder(order: Order): string {\n  return order.lineCount;\n}\n\n"
    "describeOrder({ orderNumber: 17, lineCount: 2 });\n",
    "web/sum.mjs": "export function sumLines(lines) {\n"
    "  return lines.reduce((sum, line) => sum + line.unitPrice, 0);\n}\n",
    "web/sum.test.mjs": "import assert from 'node:assert/strict';\n"
    "import { test } from 'node:test';\nimport { sumLines } from './sum.mjs';\n\n"
    "test('sums prices', () => assert.equal(sumLines([{ unitPrice: 2 }]), 2));\n"
    "test('sums nothing', () => assert.equal(sumLines([]), 1));\n",
    "web/main.mjs": "import { sumLines } from './sum.mjs';\n\nsumLines([undefined]);\n",
    "web/lib/package.json": json.dumps({"name": "shop-lib", "version": "0.3.0"}),
}


def main() -> None:
    """Record all."""
    with tempfile.TemporaryDirectory() as name:
        repo = Path(name).resolve() / "shop"
        make(repo)
        for name, command in COMMANDS.items():
            (HERE / f"{name}.txt").write_text(f"$ {command}\n{record(repo, command)}\n")


def make(repo: Path) -> None:
    """The repository, with two commits and changes after them."""
    for path, text in FILES.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
    run(repo, "git init --quiet --initial-branch main && git add . && git commit -qm 'Add orders'")
    (repo / "README.md").write_text(FILES["README.md"] + "\nPrices are in euros.\n")
    run(repo, "git commit -qam 'Say what prices are in'")
    (repo / "src/store/orders.py").write_text(ORDERS.replace("0.19", "0.2") + "\n\nVERSION = 2\n")
    (repo / "web/refunds.ts").write_text("export const refundRate = 1;\n")
    (repo / "src/store/unused.py").write_text(FILES["src/store/unused.py"] + "    return x\n")


def record(repo: Path, command: str) -> str:
    """What the command puts out, with its exit code as Pi tells it; nothing of this machine."""
    done = run(repo, command)
    text = done.stdout.rstrip("\n")
    if done.returncode:
        text += f"\n\nCommand exited with code {done.returncode}"
    for own, shown in ((str(repo), "/repo"), (str(ROOT), "/tools"), (sys.prefix, "/venv")):
        text = text.replace(own, shown)
    text = re.sub(r"/\S*/(lib/python\d\.\d+)/", r"/usr/\1/", text)
    return re.sub(r"^(?:platform|plugins:|rootdir:|npm warn) .*\n+", "", text, flags=re.MULTILINE)


def run(repo: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the repository, both its streams in one."""
    who = {"NAME": "Ada", "EMAIL": "ada@example.org", "DATE": "2026-01-02T03:04:05Z"}
    author = {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()}
    paths = [str(Path(sys.executable).parent), str(ROOT / "node_modules" / ".bin")]
    environment = {
        **os.environ,
        **author,
        "PATH": os.pathsep.join([*paths, os.environ["PATH"]]),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "100",
    }
    return subprocess.run(
        ["bash", "-c", command],
        cwd=repo,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    main()
