"""A worker that knows nothing of Idem but the table, and claims keys by the statements of docs/schema.md.

It is started by tests/it/python.rs and told on its standard input what to deliver.
"""

import os
import sys
from collections import deque

import psycopg

MARK = "IDEM_TEST_CHILD"


def section(heading):
    """The Postgres statements below a heading of the document: its first block of SQL, without the remarks."""
    with open(os.environ["IDEM_TEST_SCHEMA"], encoding="utf-8") as document:
        below = document.read().split(f"### {heading}\n")[1].split("\n### ")[0]
    block = below.split("```sql\n")[1].split("```")[0]
    code = "\n".join(line.split("--")[0] for line in block.splitlines())
    return [" ".join(statement.split()) for statement in code.split(";") if statement.strip()]


def connect():
    # The document's `$1` is Postgres's own way to write a parameter.
    return psycopg.connect(
        os.environ["IDEM_TEST_URL"], autocommit=True, cursor_factory=psycopg.RawCursor
    )


class InsertFirst:
    """Each statement is a transaction of its own; the effect is made elsewhere."""

    def __init__(self):
        self.insert, self.look, self.retake, self.complete, self.give_back = section("Insert first")
        self.keys, self.outside = connect(), connect()

    def deliver(self, key, fails):
        if self.keys.execute(self.insert, [key]).rowcount == 0:
            found = self.keys.execute(self.look, [key]).fetchone()
            if found == ("completed",):
                return "skipped"
            if found != ("released",) or self.keys.execute(self.retake, [key]).rowcount == 0:
                return "busy"
        if fails:
            assert self.keys.execute(self.give_back, [key]).rowcount == 1, key
            return "failed"
        self.outside.execute("INSERT INTO effects (key, worker) VALUES ($1, 'python')", [key])
        assert self.keys.execute(self.complete, [key]).rowcount == 1, key
        return "ran"


class OneTransaction:
    """The effect is a row of the same database, and is there if and only if the key is completed."""

    def __init__(self):
        self.begin, self.insert, self.look, self.complete, self.commit = section("One transaction")
        self.keys = connect()

    def deliver(self, key, fails):
        self.keys.execute(self.begin)
        inserted = self.keys.execute(self.insert, [key]).rowcount == 1
        (status,) = self.keys.execute(self.look, [key]).fetchone()
        free = inserted or status == "released"
        if status == "completed" or not free:
            self.keys.execute("ROLLBACK")
            return "skipped" if status == "completed" else "busy"
        self.keys.execute("INSERT INTO effects (key, worker) VALUES ($1, 'python')", [key])
        if fails:
            self.keys.execute("ROLLBACK")
            return "failed"
        self.keys.execute(self.complete, [key])
        self.keys.execute(self.commit)
        return "ran"


def deliver_all(worker, numbers, failing):
    """Delivers each key until it is done; counts those that ran here and those that had run elsewhere.

    Where a key's number leaves `failing` when it is divided by ten, its work fails here once.
    """
    queue = deque(numbers)
    failed, ran, skipped = set(), 0, 0
    while queue:
        number = queue.popleft()
        fails = number % 10 == failing and number not in failed
        match worker.deliver(f"foreign:{number}", fails):
            case "ran":
                ran += 1
            case "skipped":
                skipped += 1
            case "failed":
                failed.add(number)
                queue.append(number)
            case "busy":
                queue.append(number)
    return f"{ran} {skipped}"


def fail_all(worker, numbers):
    """Delivers each key once, and none of the work succeeds; counts those that ran."""
    return sum(worker.deliver(f"foreign:{number}", True) == "failed" for number in numbers)


def main():
    worker = {"insert first": InsertFirst, "one transaction": OneTransaction}[sys.argv[1]]()
    print(f"\n{MARK} ready", flush=True)
    for line in sys.stdin:
        verb, first, end, step, failing = (int(word) if word.isdigit() else word for word in line.split())
        numbers = [first + turn * step % (end - first) for turn in range(end - first)]
        done = deliver_all(worker, numbers, failing) if verb == "deliver" else fail_all(worker, numbers)
        print(f"\n{MARK} done {done}", flush=True)


main()
