#!/usr/bin/env python3
"""Runs a study whose cases are commands of vitrail, and keeps its tables.

    bench/study.py configs/studies/zero.json [--vitrail PROGRAM] [--json FILE] [--keep] [--only TABLE]

`vitrail scale` is the command for training speed over ranks; this is for everything else that is one command a row: inference
with other meshes, memory with other stages, plans for other devices. A config has tables; a table has `run`, a command by
name, with {axis} where a value goes and $NAME for the environment, `axes` (every combination) or `cases`, and `columns`: a `text`, or the `path` of a number
in what --json printed (a list is its `rows`; of `train` what its log came to, see of_run; `process_bytes` is the most memory that the
process held). `minus` takes another path off, `over` divides by one, `against_first` by the first row's, `cut` splits rows: against the first
of those with the same value. Cases run in an order drawn by `seed`, `repeat` times; medians are kept. A command that exits
with anything but 0 ends the study with its words, unless `may_fail` names it: then they stand in its cells.

--keep writes docs/experiments/data/NAME.json and its line of about.json: command, machine, date, commit.
tools/make_experiment_docs.py puts the tables into the document that the config names."""
import argparse
import datetime
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

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs/experiments/data"


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
    commit = os.environ.get("VITRAIL_COMMIT") or subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {"machine": machine(), "date": datetime.date.today().isoformat(), "commit": commit}


def keep(name, facts, data=None):
    """Writes a file of data and what about.json says of it."""
    if data is not None:
        (DATA / name).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    load = (data or {}).get("load", 0)
    if load > os.cpu_count() / 2 and facts.get("state") != "planned":
        facts = {"note": f"other work on the machine, load {load:.0f}: times are worth little", **facts}
    about = json.loads((DATA / "about.json").read_text())
    about[name] = {**made(), "state": "measured", **(data or {}).get("made", {}), **facts}
    (DATA / "about.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def run_kept(words):
    """(exit code, output, words on stderr, the most memory that the process held)."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(words, stdout=out, stderr=err, cwd=ROOT)
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


def call(vitrail, words):
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        extra = ["--out", str(run), "--quiet"] if words[0] == "train" else ["--json"]
        code, out, err, held = run_kept([vitrail, *words, *extra])
        if code:
            return {"exit": code, "error": err.strip().splitlines()[-1] if err.strip() else ""}
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

    def measure(self, vitrail, repeat):
        """What every case's commands printed, repetition by repetition."""
        found = [{} for _ in self.cases]
        order = [(i, command) for i in range(len(self.cases)) for command in self.spec["run"]]
        for turn in range(repeat):
            self.random.shuffle(order)
            for i, command in order:
                words = shlex.split(os.path.expandvars(self.spec["run"][command].format(**self.cases[i])))
                if turn and words[0] == "plan":
                    continue  # a plan has no spread
                began = time.monotonic()
                answer = call(vitrail, words)
                print(f"{self.name} {self.cases[i]} {command}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
                if "exit" in answer and command not in self.spec.get("may_fail", []):
                    sys.exit(f"{' '.join(words)}: {answer['error']}")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--vitrail", default=str(ROOT / "build/release/vitrail"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--only")
    args = parser.parse_args()
    config = read_config(args.config)
    result = {"load": os.getloadavg()[0], "tables": {}}
    for name, spec in config["tables"].items():
        if args.only in (None, name):
            one = Table(name, spec, config.get("seed", 0))
            result["tables"][name] = one.made(one.measure(args.vitrail, spec.get("repeat", config.get("repeat", 1))))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    if args.keep:
        facts = {key: config[key] for key in ("experiment", "document", "state", "note") if key in config}
        keep(args.config.stem + ".json", {**facts, "command": f"bench/study.py configs/studies/{args.config.name}"}, result)
    if not args.json and not args.keep:
        print(json.dumps(result, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
