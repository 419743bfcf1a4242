"""Files that outlive a kill: whole ones, which have their old content or their new, and journals of answers, which lose at most the
line that was being written."""
import contextlib
import fcntl
import json
import os
import sys
from pathlib import Path


def flush_folder(path):
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_whole(path, text):
    """Replaces the file by the text: under another name first, and on the disk before it gets its own."""
    path = Path(path).resolve()  # what a link leads to is replaced, not the link
    if path.exists() and not path.is_file():  # /dev/stdout
        path.write_text(text)
        return
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        with temporary.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


@contextlib.contextmanager
def alone_in(folder):
    """Nobody else who asks for it is in this block at the same time: what is read in it is still so when it is written."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def parsed(line):
    """[key, answer] of a journal's line; nothing where it is damaged."""
    try:
        key, answer = json.loads(line)
        hash(tuple(key))
        return [*key, answer] if isinstance(answer, dict) else None
    except (ValueError, TypeError):
        return None


class Journal:
    """The answers of a study so far, one a line behind a line that says whose they are. What is there is never written again, but
    for the end of a line that a kill has cut off, which goes."""

    def __init__(self, path, whose):
        self.path, self.whose, self.known = Path(path), whose, {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        first = json.dumps(whose).encode() + b"\n"
        if not self.path.exists():
            write_whole(self.path, first.decode())
        self.file = self.path.open("r+b")
        try:
            self.begin(first)
        except BaseException:
            self.close()
            raise

    def begin(self, first):
        self.lock()
        content = self.file.read()
        whole = self.read(content, first)
        if whole < len(content):
            print(f"{self.path}: its last line is damaged and dropped", file=sys.stderr)
            self.file.truncate(whole)
        self.file.seek(whole)
        if whole == 0:
            self.file.write(first)
        self.flush()

    def lock(self):
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"{self.path}: another process writes it; wait for it, or name another file with --journal")

    def read(self, content, first):
        """Takes what is known; returns how many bytes of the file hold whole lines."""
        if first.startswith(content):
            return len(content) if content == first else 0  # killed within its first line
        lines = content.splitlines(keepends=True)
        self.check_owner(lines[0])
        whole = len(lines[0])
        for number, line in enumerate(lines[1:], 2):
            entry = parsed(line) if line.endswith(b"\n") else None
            if entry is None and number == len(lines):
                break
            if entry is None:
                sys.exit(f"{self.path}: line {number} is damaged: remove that line, and its case runs again, or name another file with --journal")
            self.known[tuple(entry[:-1])] = entry[-1]
            whole += len(line)
        return whole

    def check_owner(self, line):
        try:
            there = json.loads(line)
        except ValueError:
            there = None
        if not isinstance(there, dict) or "config" not in there:
            sys.exit(f"{self.path} is no journal of a study, or its first line is damaged: name another file with --journal")
        other = [key for key in self.whose if there.get(key) != self.whose[key]]
        if other:
            sys.exit(f"{self.path} holds answers of another {' and '.join(other)}: remove it, or name another file with --journal")

    def flush(self):
        self.file.flush()
        os.fsync(self.file.fileno())

    def answer(self, key, ask):
        """What was answered before, or now."""
        if key not in self.known:
            self.known[key] = ask()
            self.file.write(json.dumps([key, self.known[key]]).encode() + b"\n")
            self.flush()
        return self.known[key]

    def end(self, tables):
        """The answers of these tables are kept elsewhere; the journal goes with the last."""
        left = [[key, answer] for key, answer in self.known.items() if key[0] not in tables]
        if left:
            write_whole(self.path, "".join(json.dumps(line) + "\n" for line in [self.whose, *left]))
        else:
            self.path.unlink()
        self.close()

    def close(self):
        self.file.close()


class NoJournal:
    def answer(self, key, ask):
        return ask()

    def end(self, tables):
        pass
