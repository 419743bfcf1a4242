#!/usr/bin/env python3
"""clang-tidy over the whole tree in a third of the time that single sources take.
  tools/tidy_whole.py BUILD-FOLDER [--tidy PROGRAM] [--jobs N] [--only TEXT] [--again]
Units in which nothing was found are remembered in BUILD-FOLDER/tidied and not read again until a file that they
include, their flags, the checks or clang-tidy itself have changed; the words of comments on lines of their own do not
count, unless they silence a check. Most of a run is the reading of headers, so sources that CMake unites (preset
lint-whole) are read as one. What clang's analyzer follows must stand in the main file, not in one that it includes: a
unit's sources are written one behind the other, and places in what clang-tidy says are told as those of the sources."""
import argparse
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

INCLUDE = re.compile(r'^#include "(.+\.cpp)"$', re.MULTILINE)
SUMMARY = re.compile(r"^\d+ warnings?( and \d+ errors?)? generated\.$|^Suppressed |^Use -header-filter|^Error while processing ")

# A line that is only a comment, does not go on in the next line and says nothing to clang-tidy.
COMMENT = re.compile(rb"^[ \t]*//(?!.*NOLINT).*(?<!\\)$", re.MULTILINE)


def included_twice(source):
    """A line for each #include of a source that stands there twice, but for those that conditions choose between."""
    text = source.read_text()
    names = [] if re.search(r"^#\s*if", text, re.MULTILINE) else re.findall(r"^#include (\S+)", text, re.MULTILINE)
    return [f"{os.path.relpath(source)}: error: {name} is included twice" for name in sorted({n for n in names if names.count(n) > 1})]


@functools.lru_cache(maxsize=None)
def file_hash(path):
    """A hash of a file in which every line that is only a comment counts as an empty one."""
    return hashlib.sha256(COMMENT.sub(b"//", Path(path).read_bytes())).hexdigest()


class Unit:
    """One source of a compilation database, or several that are compiled together."""

    def __init__(self, entry, folder, number):
        united = Path(entry["file"])
        self.sources = [Path(name) for name in INCLUDE.findall(united.read_text())] if united.suffix == ".cxx" else [united]
        self.name = united.relative_to(folder) if united.is_relative_to(folder) else Path(os.path.relpath(united))
        self.file, self.starts = united, [1]
        if united.suffix == ".cxx":
            self.file = folder / "united" / f"{number}.cpp"
            self.write_together()
        words = shlex.split(entry["command"])
        self.flags = [word for i, word in enumerate(words[1:], 1)
                      if word not in ("-c", "-o", entry["file"]) and words[i - 1] != "-o"]
        # What sources include from their own folder.
        self.flags += sorted({f"-iquote{source.parent}" for source in self.sources})
        self.folder = entry["directory"]
        self.compiler = words[0]

    def write_together(self):
        texts = [source.read_text() for source in self.sources]
        for text in texts[:-1]:
            self.starts.append(self.starts[-1] + text.count("\n"))
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text("".join(texts))

    def in_source(self, line):
        """A line of clang-tidy's with the place in a source instead of the place in the unit."""
        found = re.match(re.escape(str(self.file)) + r":(\d+)(:.*)$", line)
        if not found:
            return line
        at = int(found[1])
        which = max(i for i, start in enumerate(self.starts) if start <= at)
        return f"{os.path.relpath(self.sources[which])}:{at - self.starts[which] + 1}{found[2]}"

    def key(self, tidy):
        """A hash of all that clang-tidy reads and is told; empty if the compiler cannot name the files."""
        done = subprocess.run([self.compiler, "-M", "-MT", "unit", str(self.file), *self.flags], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            return ""
        names = set(done.stdout.replace("\\\n", " ").split()) - {"unit:"}
        read = sorted(os.path.join(self.folder, name) for name in names)
        read += [name for name in (".clang-tidy", shutil.which(tidy), __file__) if name and os.path.exists(name)]
        text = repr([self.flags, self.sources, file_hash(self.file), [(name, file_hash(name)) for name in read if name != str(self.file)]])
        return hashlib.sha256(text.encode()).hexdigest()

    def check(self, tidy, tidied=None):
        """What clang-tidy says of it; empty if nothing. A file in the folder `tidied` says that it said nothing before."""
        key = tidied and self.key(tidy)
        if key and (tidied / key).exists():
            return ""
        said = self.said_by(tidy)
        if key and not said:
            (tidied / key).touch()
        return said

    def said_by(self, tidy):
        # Two sources may well include the same: what one includes twice is looked for in its own text.
        less = ["--checks=-readability-duplicate-include"] if len(self.sources) > 1 else []
        done = subprocess.run([tidy, "--quiet", *less, str(self.file), "--", *self.flags], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines = [self.in_source(line) for line in done.stdout.splitlines() if not SUMMARY.match(line)]
        lines += [text for source in self.sources for text in included_twice(source)]
        return "\n".join(lines) if lines or done.returncode == 0 else f"{self.name}: clang-tidy ended with {done.returncode}"


def without_launcher(entry):
    """An entry of the database whose command begins with the compiler, not with what launches it."""
    words = shlex.split(entry["command"])
    first = next((i for i, word in enumerate(words) if re.search(r"(g\+\+|clang\+\+|c\+\+)(-\d+)?$", word)), 0)
    return {**entry, "command": shlex.join(words[first:])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of a build whose compile_commands.json is read")
    parser.add_argument("--tidy", default="clang-tidy-14")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="units whose names or sources hold this text")
    parser.add_argument("--again", action="store_true", help="read units again in which nothing was found before")
    args = parser.parse_args()
    folder = args.folder.resolve()
    tidied = folder / "tidied"
    tidied.mkdir(exist_ok=True)
    for key in tidied.iterdir() if args.again else []:
        key.unlink()
    entries = [without_launcher(entry) for entry in json.loads((folder / "compile_commands.json").read_text())]
    units = [Unit(entry, folder, number) for number, entry in enumerate(entries)]
    units = [unit for unit in units if any(args.only in str(name) for name in [unit.name, *unit.sources])]
    found = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for number, (unit, text) in enumerate(zip(units, pool.map(lambda unit: unit.check(args.tidy, tidied), units)), 1):
            if text:
                found += 1
                print(text, flush=True)
            if sys.stderr.isatty():
                print(f"\rtidy: {number} of {len(units)} units", end="\n" if number == len(units) else "", file=sys.stderr)
    print(f"tidy: {len(units)} units, {sum(len(unit.sources) for unit in units)} sources, {found} units with findings")
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
