"""The audit's rows of C about time, memory and what a run leaves behind."""
import gzip
import os
import shutil
import subprocess
import zipfile

import sweep_train
from audit_place import Broken, expect, said
from audit_torch import View, write_torch
from kill_train import Broken as BrokenRun


def used(place, *arguments):
    """Exit status, processor seconds and MiB resident of a command, and what it said."""
    with open(place.tmp / "said", "w+") as out:
        child = subprocess.Popen([place.program, *arguments], env=place.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def zeros(file, count):
    """So many bytes, a block at a time: what this process holds counts as resident in those it starts."""
    for at in range(0, count, 1 << 20):
        file.write(bytes(min(1 << 20, count - at)))


def digits(place, count):
    """A dataset of black digits in two classes, packed by gzip."""
    folder = place.tmp / "digits"
    folder.mkdir()
    for part in ("train", "t10k"):
        with gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb", 1) as file:
            file.write(b"".join(n.to_bytes(4, "big") for n in (0x803, count, 28, 28)))
            zeros(file, 784 * count)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            b"".join(n.to_bytes(4, "big") for n in (0x801, count)) + bytes([0, 1]) * (count // 2))
    return f"idx:{folder}"


def c4(place):
    """What unpacks to much more than the file has."""
    count = 100_000
    _, _, resident = used(place, "data", "stats", digits(place, count), "--limit", "1")
    content = 2 * 784 * count / 2**20
    expect(resident < content + 40, f"idx.gz of {content:.0f} MiB unpacked: {resident:.0f} MiB resident")


def c4_stats(place):
    """Statistics of a large tensor."""
    elems = 32 << 20
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({elems},), }}".ljust(117) + "\n"
    with zipfile.ZipFile(place.tmp / "zeros.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("zeros.npy", "w") as entry:
            entry.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
            zeros(entry, 4 * elems)
    code, _, resident = used(place, "inspect", place.tmp / "zeros.npz", "--stats", "--json")
    expect(code == 0 and resident < 80, f"inspect --stats of a tensor of 128 MiB: {resident:.0f} MiB resident, exit {code}")


def c5(place):
    """Many views of one storage, each of all of it."""
    elems = 1 << 20
    views = {f"t{i}": View(0, 0, [elems]) for i in range(200)}
    write_torch(place.tmp / "views.pth", views, [bytes(4 * elems)])
    code, seconds, _ = used(place, "inspect", place.tmp / "views.pth", "--stats", "--json")
    expect(code == 65, f"a file of {(place.tmp / 'views.pth').stat().st_size >> 10} KiB read for {seconds:.1f} s "
           f"as 800 MiB, exit {code}")


def s1(place):
    """A storage that many tensors share is read once, not once a tensor."""
    each = 1 << 16
    views = {f"t{i}": View(0, i * each, [each]) for i in range(128)}
    write_torch(place.tmp / "shared.pth", views, [bytes(4 * each * 128)], deflated=False)
    code, seconds, _ = used(place, "inspect", place.tmp / "shared.pth", "--stats", "--json")
    expect(code == 0 and seconds < 1.5, f"128 tensors of one storage of 32 MiB: {seconds:.1f} s of processor, exit {code}")


def c6(place):
    """A cell of very many labels."""
    labels = 60_000
    (place.tmp / "images").mkdir()
    shutil.copy(place.noise("one", count=1) / "a/0.png", place.tmp / "images/a.png")
    (place.tmp / "images/labels.csv").write_text("filename,labels\na.png," + ";".join(map(str, range(labels))) + "\n")
    code, seconds, _ = used(place, "data", "stats", f"folder:{place.tmp / 'images'}")
    expect(code == 0 and seconds < 2, f"{labels} labels in a cell: {seconds:.1f} s of processor, exit {code}")


def c7(place):
    """Other pixels under the same names."""
    sections = {"data": {"train": f"folder:{place.noise()}"}}
    place.ok(*place.training("run", **sections))
    place.noise(seed=2)
    done = place.run(*place.training("run", "--resume", "--set", "train.steps=6", **sections))
    expect(done.returncode == 64, f"resumed with other pixels without a word: exit {done.returncode}")


def c8(place):
    """Opening the data is part of --max-time."""
    data = {"train": digits(place, 200_000)}
    done = place.run(*place.training("run", "--max-time", "0.05s", data=data, train={"steps": 10**6}))
    steps = sum(line["kind"] == "train" for line in place.log())
    expect(steps <= 1, f"{steps} steps after the time was up, exit {done.returncode}")


def again(place, **sections):
    """A run that is resumed for two steps more."""
    return place.ok(*place.training("run", "--resume", "--set", "train.steps=6", **sections))


def c9(place):
    """An unfinished checkpoint of another host."""
    place.ok(*place.training("run"))
    left = place.tmp / "run/checkpoints/.tmp-step-00000001-elsewhere-7-1"
    left.mkdir()
    again(place)
    expect(not left.exists(), f"{left.name} stays")


def c10(place):
    """A clock that was set back between two lives."""
    sections = {"train": {"tensorboard": True}}
    place.ok(*place.training("run", **sections))
    first = next((place.tmp / "run").glob("events.out.tfevents.*"))
    parts = first.name.split(".")
    later = first.rename(first.with_name(".".join(parts[:3] + ["9000000000", "000000"] + parts[5:])))
    again(place, **sections)
    names = sorted(path.name for path in (place.tmp / "run").glob("events.out.tfevents.*"))
    expect(len(names) == 2 and names[0] == later.name, "the file of the later start sorts first")


def c12(place):
    """Half-written files of dead processes."""
    place.ok(*place.training("run"))
    left = [place.tmp / "run" / f".{name}.tmp-4194304-1" for name in ("config.json", "summary.csv", "report.html")]
    for path in left:
        path.write_text("half")
    again(place)
    expect(not any(path.exists() for path in left), f"{', '.join(p.name for p in left if p.exists())} stay")


def c13(place):
    """Lines of the log are on the disk before a checkpoint that stands on them."""
    calls = place.tmp / "calls"
    place.ok(*place.training("run", "--threads", "1", train={"save_every": 1, "save_minutes": 0}),
             env=place.faulted(place.tmp / "run", FAULT_LOG=str(calls)))
    try:
        sweep_train.check_durable_logs(calls)
    except BrokenRun as broken:
        raise Broken(str(broken)) from None


def c14(place):
    """Refusals of settings bring a remedy; a byte order mark is passed over."""
    wrong = {"train.smoothing": "2", "optim.lr": "-1", "schedule.warmup": "-1", "augment.hflip": "2", "augment.crop_scale": "[2, 3]",
             "optim.beta2": "2", "train.dropout": "1.5", "model.patch": "3", "model.heads": "3", "data.val_fraction": "2"}
    silent = []
    for key, value in wrong.items():
        done = place.run(*place.training("run", "--set", f"{key}={value}"))
        silent += [key] * (done.returncode != 0 and "try:" not in done.stderr)
    config = place.config()
    config.write_bytes(b"\xef\xbb\xbf" + config.read_bytes())
    done = place.run("plan", "--config", config)
    expect(not silent and done.returncode == 0, f"no remedy for {len(silent)} of {len(wrong)} ({', '.join(silent)}); "
           f"config with a byte order mark: {said(done)}")


def c16(place):
    """Planning a step of five times the depth takes at most five times as long."""
    seconds = [used(place, "plan", "--config", place.config(model={"depth": depth}))[1] for depth in (32, 160)]
    expect(seconds[1] < 5 * seconds[0], f"plan takes {seconds[0]:.2f} s at 32 blocks and {seconds[1]:.2f} s at 160")
