#!/usr/bin/env python3
"""Runs a study whose cases are commands of vitrail, and keeps its tables.

    bench/study.py configs/studies/zero.json [--vitrail PROGRAM] [--json FILE] [--keep] [--only TABLE]
    bench/study.py --take FILE NAME.json

`vitrail scale` is the command for training speed over ranks; this is for everything else that is one command a row: inference
with other meshes, memory with other stages, plans for other devices. A config has tables; a table has `run`, a command by
name, with {axis} where a value goes and $NAME for the environment, `axes` (every combination) or `cases`, and `columns`: a `text`, or the `path` of a number
in what --json printed (a list is its `rows`; of `train` what its log came to, see of_run; `process_bytes` is the most memory that the
process held). `minus` takes another path off, `over` divides by one, `against_first` by the first row's, `cut` splits rows: against the first
of those with the same value. Cases run in an order drawn by `seed`, `repeat` times; medians are kept. A command that exits
with anything but 0 ends the study with its words, unless `may_fail` names it: then they stand in its cells. `environment` has variables of the commands, with {axis}, too.

Answers are written to runs/studies/NAME.jsonl (--journal FILE) as they come, until the study ends: the same command goes on where one was
stopped or killed, and a journal of another config, program, machine or commit is refused. A line that a kill has cut off is dropped.

--keep writes docs/experiments/data/NAME.json and its line of about.json: command, machine, date, commit. With --only the other tables of
that file stay, each with where, when and at which commit it was made. --take does so with a file
that --json wrote on another machine, for a NAME.json that about.json knows.
tools/make_experiment_docs.py puts the tables into the document that the config names."""
import argparse
import datetime
import hashlib
import itertools
import json
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kept_files import Journal, NoJournal, alone_in, write_whole

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs/experiments/data"
COMMIT = os.environ.pop("VITRAIL_COMMIT", "")  # for us: the program warns of variables that it does not know


def read_config(path):
    """JSON with whole-line comments."""
    lines = Path(path).read_text().splitlines()
    return json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))


def machine():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    units = [name for name, flag in (("AVX-512", "avx512f"), ("AMX", "amx_tile")) if flag in facts.get("flags", "").split()]
    words = [facts.get("model name", "unknown processor").replace("(R)", ""), f"{os.cpu_count()} cores", *units]
    return ", ".join(words + [gpu() or "no GPU"])


def gpu():
    """The first GPU and its driver; nothing where there is none."""
    if not shutil.which("nvidia-smi"):
        return ""
    done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    return done.stdout.splitlines()[0].replace(", ", ", driver ") if done.returncode == 0 and done.stdout else ""


def made():
    """Where, when and at which commit a result is made; VITRAIL_COMMIT names it where the program runs without its repository."""
    commit = COMMIT or subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {"machine": machine(), "date": datetime.date.today().isoformat(), "commit": commit}


def build_of(vitrail):
    """The program's version and a checksum of its file and of the plugins beside it: commits of one version differ."""
    version = subprocess.run([vitrail, "--version"], capture_output=True, text=True).stdout.strip()
    program = Path(shutil.which(vitrail) or vitrail)
    digest = hashlib.sha256()
    for file in [program, *sorted(program.parent.glob("libvitrail_*.so"))]:
        digest.update(file.read_bytes())
    return f"{version}, sha256 {digest.hexdigest()[:16]}"


def load():
    """How many processes ran beside this one, in the mean of half a second: the system's own mean has what ran minutes before in it, too."""
    counts = []
    for _ in range(10):
        lines = Path("/proc/stat").read_text().splitlines()
        counts.append(next((int(line.split()[1]) for line in lines if line.startswith("procs_running")), 1) - 1)
        time.sleep(0.05)
    return statistics.fmean(counts)


def json_text(value):
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def keep(name, facts, data=None):
    """Writes a file of data and what about.json says of it, each whole."""
    with alone_in(DATA):
        keep_alone(name, facts, data)


def keep_alone(name, facts, data):
    if data is not None:
        write_whole(DATA / name, json_text(with_kept(name, data)))
    others, cores = (data or {}).get("load", 0), (data or {}).get("cores") or os.cpu_count()
    if others > cores / 2 and facts.get("state") != "planned":
        facts = {"note": f"other work on the machine, load {others:.0f}: times are worth little", **facts}
    about = json.loads((DATA / "about.json").read_text())
    about[name] = {**made(), "state": "measured", **(data or {}).get("made", {}), **facts}
    write_whole(DATA / "about.json", json_text(about))


def kept_tables(name):
    """The tables that a file of data has, each with where, when and at which commit it was made."""
    path = DATA / name
    if not path.exists():
        return {}
    try:
        tables = json.loads(path.read_text())["tables"]
        about = json.loads((DATA / "about.json").read_text()).get(name, {})
        made = {key: about.get(key, "") for key in ("machine", "date", "commit", "note")}
        return {table: {"made": made, **content} for table, content in tables.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"{path} holds no tables that others could be kept beside ({type(error).__name__}: {error}): mend it, or leave --only out")


def with_kept(name, data):
    """Data of --only, which say what tables there are, with those that are kept; other data as they are."""
    if "tables_of_all" not in data:
        return data
    tables = {**kept_tables(name), **data["tables"]}
    order = [table for table in [*data["tables_of_all"], *tables] if table in tables]
    return {**{key: data[key] for key in data if key != "tables_of_all"}, "tables": {table: tables[table] for table in order}}


def run_kept(words, environment):
    """(exit code, output, words on stderr, the most memory that the process held)."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(words, stdout=out, stderr=err, cwd=ROOT, env={**os.environ, **environment})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        return process.returncode, out.read(), err.read(), usage.ru_maxrss * 1024


def of_run(folder):
    """What a training run came to, by its log."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    evals = [line for line in lines if line["kind"] == "eval"]
    train = [line for line in lines if line["kind"] == "train"]
    return {"top1": evals[-1]["top1"], "best_top1": max(line["top1"] for line in evals), "eval_loss": evals[-1]["loss"],
            "best_eval_loss": min(line["loss"] for line in evals), "train_loss": statistics.mean(line["loss"] for line in train[-5:]),
            "steps": train[-1]["step"], "seconds": sum(line["interval_s"] for line in train), "memory_bytes": train[-1]["memory_bytes"]}


def call(vitrail, words, environment):
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        extra = ["--out", str(run), "--quiet"] if words[0] == "train" else ["--json"]
        code, out, err, held = run_kept([vitrail, *words, *extra], environment)
        if code:
            lines = err.strip().splitlines() or [""]
            return {"exit": code, "error": next((line for line in lines if line.startswith("error")), lines[-1])}
        answer = of_run(run) if words[0] == "train" else json.loads(out)
        return {**answer, "process_bytes": held} if isinstance(answer, dict) else {"rows": answer}


def lookup(value, path):
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


class Table:
    def __init__(self, name, spec, seed):
        self.name, self.spec, self.random = name, spec, random.Random(seed)
        axes = spec.get("axes", {})
        self.cases = spec.get("cases") or [dict(zip(axes, values)) for values in itertools.product(*axes.values())]

    def answer(self, vitrail, i, command):
        words = shlex.split(os.path.expandvars(self.spec["run"][command].format(**self.cases[i])))
        began = time.monotonic()
        answer = call(vitrail, words, {name: value.format(**self.cases[i]) for name, value in self.spec.get("environment", {}).items()})
        print(f"{self.name} {self.cases[i]} {command}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
        if "exit" in answer and command not in self.spec.get("may_fail", []):
            sys.exit(f"{' '.join(words)}: {answer['error']}")
        return answer

    def measure(self, vitrail, repeat, journal=NoJournal()):
        """What every case's commands printed, repetition by repetition."""
        found = [{} for _ in self.cases]
        order = [(i, command) for i in range(len(self.cases)) for command in self.spec["run"]]
        for turn in range(repeat):
            self.random.shuffle(order)
            for i, command in order:
                if turn and self.spec["run"][command].startswith("plan "):
                    continue  # a plan has no spread
                answer = journal.answer((self.name, i, command, turn), lambda: self.answer(vitrail, i, command))
                found[i].setdefault(command, []).append(answer)
        return found

    def value(self, path, results):
        command, rest = path.split(".", 1)
        values = [lookup(answer, rest) for answer in results[command] if "exit" not in answer]
        if not values:
            return results[command][0]["error"]
        return statistics.median(values) if isinstance(values[0], (int, float)) and not isinstance(values[0], bool) else values[0]

    def cell(self, column, case, results):
        if "text" in column:
            return column["text"].format(**case)
        value = self.value(column["path"], results)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str):
            return value
        if "minus" in column:
            value -= self.value(column["minus"], results)
        if "over" in column:
            value /= self.value(column["over"], results)
        return value * column.get("times", 1)

    def rows(self, found):
        columns = self.spec["columns"]
        rows = [[self.cell(column, case, results) for column in columns] for case, results in zip(self.cases, found)]
        for place, column in enumerate(columns):
            if not column.get("against_first"):
                continue
            key = lambda i: self.cases[i].get(column.get("cut"))
            raw = [row[place] for row in rows]
            for i, row in enumerate(rows):
                first = next(k for k in range(len(rows)) if key(k) == key(i))
                ratio = raw[first] / raw[i] if column.get("inverse") else raw[i] / raw[first]
                row[place] = ratio
        return rows

    def made(self, found):
        columns = [{key: column[key] for key in ("title", "unit") if key in column} for column in self.spec["columns"]]
        return {"columns": columns, "rows": self.rows(found)}


def take(path, name):
    """Keeps a result that was made on another machine."""
    data = json.loads(Path(path).read_text())
    about = json.loads((DATA / "about.json").read_text())
    if "made" not in data or name not in about:
        sys.exit(f"{path} does not say where it was made" if name in about else f"data/about.json says nothing of {name}")
    facts = {key: about[name][key] for key in ("experiment", "document", "command")}
    keep(name, {**facts, "state": "measured"}, data)


def run(args):
    config = read_config(args.config)
    asked = [name for name in config["tables"] if args.only in (None, name)]
    if not asked:
        sys.exit(f"{args.config} has no table {args.only}; it has {', '.join(config['tables'])}")
    if args.keep and args.only:
        kept_tables(args.config.stem + ".json")  # refused before anything runs
    origin = made()
    journal = Journal(args.journal or ROOT / f"runs/studies/{args.config.stem}.jsonl",
                      {"config": config, "program": build_of(args.vitrail), "machine": origin["machine"], "commit": origin["commit"]})
    result = {"made": origin, "load": load(), "cores": os.cpu_count(), **({"tables_of_all": list(config["tables"])} if args.only else {}), "tables": {}}
    for name in asked:
        spec = config["tables"][name]
        one = Table(name, spec, config.get("seed", 0))
        result["tables"][name] = one.made(one.measure(args.vitrail, spec.get("repeat", config.get("repeat", 1)), journal))
    if args.json:
        write_whole(args.json, json_text(result))
    if args.keep:
        facts = {key: config[key] for key in ("experiment", "document", "state", "note") if key in config}
        keep(args.config.stem + ".json", {**facts, "command": f"bench/study.py configs/studies/{args.config.name}"}, result)
    if not args.json and not args.keep:
        print(json_text(result), end="")
    journal.end(asked)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path, nargs="?")
    parser.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--journal", type=Path, help="where answers are kept until the study ends")
    parser.add_argument("--take", nargs=2, metavar=("FILE", "NAME"))
    args = parser.parse_args()
    if not (args.take or args.config):
        parser.error("a config is missing")
    return take(*args.take) if args.take else run(args)


if __name__ == "__main__":
    main()
