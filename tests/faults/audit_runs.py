"""The audit's rows A and some of B: training runs that lost their work, or that of others."""
import json
import os
import shutil
import signal
import subprocess
import time

from audit_place import CAT, Skipped, expect, said


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
    settings = {"sincos2d": {"model": {"pos": "sincos2d", "pos_for_prefix": False}}, "one mean": {"preprocess": {"mean": [0.5], "std": [0.5]}},
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
    lost = ["config.json"] * ((folder / "config.json").read_bytes() != before) + ["best/"] * (not (folder / "best/notes.txt").exists())
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


NO_SWAP = {"FAULT_NO_SWAP": "1"}
OFTEN = {"train": {"steps": 8, "eval_every": 1, "save_every": 1, "save_minutes": 0}, "optim": {"lr": 0.01},
         "checkpoint": {"keep_last": 2}}


def killed_and_resumed(place, kind):
    """Runs without swaps of folders, killed at each operation of a kind in turn: after --resume best/ must be written."""
    for at in range(1, 60, 2):
        shutil.rmtree(place.tmp / "run", ignore_errors=True)
        fault = place.faulted(place.tmp / "run", FAULT_CLASS=kind, FAULT_AT=str(at), FAULT_ACTION="kill", **NO_SWAP)
        first = place.run(*place.training("run", "--threads", "1", **OFTEN), env=fault)
        if first.returncode == 0:
            return
        if not any((place.tmp / "run/checkpoints").glob("step-*")):
            continue  # the row A2
        missing = not (place.tmp / "run/best").exists() and any(line["kind"] == "eval" for line in place.log())
        done = place.run(*place.training("run", "--resume", "--threads", "1", **OFTEN), env=place.faulted(place.tmp / "run", **NO_SWAP))
        failed = [line for line in place.log() if line.get("what") == "write_failed"]
        where = f"killed at {kind} {at}"
        expect(not failed, f"{where}, resumed: best/ could not be written {len(failed)} times, {failed[0] if failed else ''}")
        expect(done.returncode == 0 and (place.tmp / "run/best/model.safetensors").exists(),
               f"{where}, best/ {'missing' if missing else 'there'}, resumed: {said(done)}")


def b4_rename(place):
    """Deaths at renames, where a file system cannot swap folders."""
    killed_and_resumed(place, "rename")


def b4_unlink(place):
    """Deaths while the folder that made way is deleted."""
    killed_and_resumed(place, "unlink")


def b5(place):
    """A disk that holds three checkpoints and a half, with three to be kept."""
    sections = {"model": {"width": 64, "mlp": 256}, "train": {"steps": 24, "save_every": 4, "save_minutes": 0, "eval_every": 1000},
                "checkpoint": {"keep_last": 3}}
    place.ok(*place.training("whole", **sections))
    one = sum(f.stat().st_size for f in next((place.tmp / "whole/checkpoints").glob("step-*")).iterdir())
    (place.tmp / "disk").mkdir()
    script = 'mount -t tmpfs -o size="$1" none "$2" || exit 99; shift 2; exec "$@"'
    command = [place.program, *place.training("disk/run", "--json", **sections)]
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
