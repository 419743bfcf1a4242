"""The audit's rows A and some of B: training runs that lost their work, or that of others."""
import json
import os
import shutil
import signal
import subprocess
import time

from audit_place import CAT, Broken, Skipped, expect, said


def a1(place):
    """A library beside a file called vitrail in the current folder must not be loaded by a program found through PATH."""
    folder = place.tmp / "cloned"
    folder.mkdir()
    (folder / "vitrail").write_text("the name the program was started by")
    listed = subprocess.run(["ldd", place.program], capture_output=True, text=True, check=True).stdout
    library = next(line.split("=>")[1].split()[0] for line in listed.splitlines() if "libz" in line or "libjpeg" in line)
    shutil.copy(library, folder / "libvitrail_cuda.so")
    env = {**place.env, "PATH": f"{os.path.dirname(place.program)}:{place.env['PATH']}", "LD_DEBUG": "files",
           "LD_DEBUG_OUTPUT": str(place.tmp / "linker")}
    subprocess.run([os.path.basename(place.program), "doctor"], cwd=folder, env=env, capture_output=True, timeout=60)
    loaded = "".join(path.read_text() for path in place.tmp.glob("linker*"))
    expect("libc.so" in loaded, "the dynamic linker told nothing")
    expect(f"calling init: {folder}" not in loaded, "libvitrail_cuda.so of the current folder was loaded and its code run")


def a2(place):
    """Killed after the first best/ and before the first checkpoint that is due."""
    sections = {"train": {"steps": 100000, "eval_every": 1, "save_minutes": 60}}
    process = place.start(*place.training("run", "--json", **sections))
    for _ in range(1000):
        if (place.tmp / "run/best/model.safetensors").exists():
            break
        time.sleep(0.01)
    process.kill()
    process.communicate()
    done = place.run(*place.training("run", "--resume", "--set", "train.steps=2", "--max-time", "1s", **sections))
    expect(done.returncode in (0, 75), f"--resume: {said(done)}")


def a3(place):
    """Settings with which no save could succeed."""
    settings = {"sincos2d": {"model": {"pos": "sincos2d", "pos_for_prefix": False}},
                "one mean": {"preprocess": {"mean": [0.5], "std": [0.5]}},
                "resize below the crop": {"preprocess": {"resize": 6}}, "crop_pct": {"preprocess": {"crop_pct": 0.9}}}
    seen = []
    for number, (name, sections) in enumerate(settings.items()):
        done = place.run(*place.training(f"run{number}", **sections))
        trained = [line for line in place.log(f"run{number}") if line["kind"] == "train"]
        saved = (place.tmp / f"run{number}/best/model.safetensors").exists()
        if trained and not (done.returncode == 0 and saved):
            seen.append(f"{name}: {len(trained)} of 4 steps made, nothing saved, exit {done.returncode}")
    expect(not seen, "; ".join(seen))


def a4(place):
    """The folder of somebody's model as --out."""
    folder = place.model("hf_single", to="mine")
    (folder / "best").mkdir()
    (folder / "best/notes.txt").write_text("mine")
    before = (folder / "config.json").read_bytes()
    done = place.run(*place.training("mine", train={"eval_every": 1}))
    lost = ["config.json"] * ((folder / "config.json").read_bytes() != before)
    lost += ["best/"] * (not (folder / "best/notes.txt").exists())
    expect(not lost, f"{' and '.join(lost)} of a user's folder replaced, {said(done)}")


def a5(place):
    """Classes whose names are Latin-1."""
    folder = os.fsencode(place.noise())
    os.rename(folder + b"/a", folder + b"/b\xeate")
    done = place.run(*place.training("run", data={"train": f"folder:{os.fsdecode(folder)}"}))
    expect(done.returncode in (0, 65), said(done))


def b2(place):
    """What is said with stderr closed must not land in the file that is written."""
    folder = place.noise()
    (folder / "a/broken.png").write_text("no image")
    subprocess.run([place.program, "data", "pack", f"folder:{folder}", "-o", place.tmp / "packed", "--skip-bad"],
                   env=place.env, preexec_fn=lambda: os.close(2), check=True, stdout=subprocess.DEVNULL)
    done = place.run("data", "check", f"packed:{place.tmp / 'packed'}")
    expect(done.returncode == 0, f"data pack 2>&- ended with 0, its file: {said(done)}")


def b3(place):
    """A batch system's warning, then its end; and a terminal that is closed."""
    seen = []
    for number, names in enumerate([("USR1", "TERM"), ("TERM", "TERM"), ("HUP",), ("XCPU",)]):
        process = place.start(*place.training(str(number), "--json", train={"steps": 10**6}))
        for name in names:
            process.send_signal(getattr(signal, "SIG" + name))
            time.sleep(0.01)
        process.communicate(timeout=60)
        if process.returncode != 75:
            seen.append(f"{' '.join(names)}: died by signal {-process.returncode}")
    expect(not seen, "; ".join(seen))


# A run whose evaluations at steps 3, 6 and 9 each find a better model.
BETTER = {"data": {"train": "synthetic:3x8x8x4x400"}, "optim": {"lr": 0.01},
          "train": {"steps": 24, "eval_every": 3, "save_every": 3, "save_minutes": 0}}


def calls_of(path):
    """The calls that the shim has written down, as lists of words."""
    raw = path.read_bytes()
    while raw:
        line, raw = raw.split(b"\n", 1)
        words = line.decode().split("\t")
        if words[0] in ("write", "say"):
            raw = raw[int(words[-1]):]
        yield words


def life(place, run, *more, **fault):
    return place.run(*place.training(run, "--threads", "1", *more, **BETTER),
                     env=place.faulted(place.tmp / run, FAULT_NO_SWAP="1", **fault))


def killed(place, kind, call, path, state):
    """Kills a run without swaps of folders at the operation of a kind that leaves a state. The second call of an
    undisturbed run on such a path is where to begin: the shim counts calls that fail as well."""
    life(place, "whole", FAULT_LOG=str(place.tmp / "calls"))
    calls = [words[-1] for words in calls_of(place.tmp / "calls") if words[0] == call]
    first = [at for at, name in enumerate(calls, 1) if path in name][1]
    for at in range(first, first + 30):
        shutil.rmtree(place.tmp / "run", ignore_errors=True)
        life(place, "run", FAULT_CLASS=kind, FAULT_AT=str(at), FAULT_ACTION="kill")
        if state(place.tmp / "run"):
            return
    raise Broken(f"best/ was not replaced, or not by {kind}")


def resumed(place, how):
    """After --resume best/ must be there, and have been written again."""
    beginning = f"{how}, best/ {'there' if (place.tmp / 'run/best').exists() else 'missing'}, resumed: "
    done = life(place, "run", "--resume")
    failed = [line for line in place.log() if line.get("what") == "write_failed"]
    expect(not failed, f"{beginning}{len(failed)} times {failed[0]['text'] if failed else ''}")
    expect(done.returncode == 0 and (place.tmp / "run/best/model.safetensors").exists(), beginning + said(done))


def b4_rename(place):
    """Death between the two renames that replace best/, where a file system cannot swap folders."""
    killed(place, "rename", "rename", "/whole/best", lambda run: not (run / "best").exists())
    resumed(place, "killed between two renames")


def b4_unlink(place):
    """Death while the best/ that made way is deleted."""
    killed(place, "unlink", "remove", "best-old/",
           lambda run: any(len(list(left.iterdir())) < 3 for left in run.glob(".tmp-*best-old")))
    resumed(place, "killed while the old one was deleted")


def b5(place):
    """A disk that holds three checkpoints and a half, with three to be kept."""
    sections = {"model": {"width": 64, "mlp": 256}, "train": {"steps": 24, "save_every": 4, "save_minutes": 0, "eval_every": 1000},
                "checkpoint": {"keep_last": 3}}
    place.ok(*place.training("whole", **sections))
    one = sum(f.stat().st_size for f in next((place.tmp / "whole/checkpoints").glob("step-*")).iterdir())
    (place.tmp / "disk").mkdir()
    script = 'mount -t tmpfs -o size="$1" none "$2" || exit 99; shift 2; exec "$@"'
    command = [place.program, *place.training("disk/run", "--json", **sections)]
    if not shutil.which("unshare"):
        raise Skipped("no unshare")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", str(int(3.6 * one)), place.tmp / "disk", *command],
                          env=place.env, capture_output=True, text=True, timeout=60)
    if done.returncode in (1, 99) and "kind" not in done.stdout:
        raise Skipped("no file system could be mounted")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    failed = [line["step"] for line in lines if line.get("what") == "write_failed"]
    expect(done.returncode == 0, f"{said(done)}; saves at steps {failed} failed, three older ones kept")


def b7(place):
    """One bit flipped in the weights of a run."""
    place.ok(*place.training("run", train={"eval_every": 1}))
    flipped = []
    for folder in ("best", "checkpoints/latest"):
        path = place.tmp / "run" / folder / "model.safetensors"
        raw = bytearray(path.read_bytes())
        raw[-3] ^= 64
        path.write_bytes(raw)
        done = place.run("predict", "-m", path.parent, CAT)
        flipped += [f"{folder}: {said(done)}"] * (done.returncode != 65)
    expect(not flipped, f"a flipped bit in {' and '.join(flipped)}")
