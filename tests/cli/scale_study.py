#!/usr/bin/env python3
"""A small study by the real program: whole, killed and continued, refused.  scale_study.py VITRAIL

Two ranks as threads, a ViT of two blocks, a few updates a case. Times differ from run to run, so what is compared is which
cases there are, in which order they ran, and that what was measured before a kill is there unchanged after it."""
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VITRAIL = sys.argv[1]
MODEL = ["--set", "model.image=16", "--set", "model.patch=8", "--set", "model.width=32", "--set", "model.depth=2",
         "--set", "model.heads=2", "--set", "model.mlp=64", "--set", "model.classes=4"]
STUDY = ["scale", "-m", "vit_tiny_patch16_224", "--ranks", "1,2", "--batches", "4,8", "--weak", "--repeat", "2", "--updates", "2",
         "--warmup", "1", "--messages", "0.01,0.1", *MODEL]


def command(folder, *options):
    return [VITRAIL, *STUDY, "--out", str(folder), *options]


def run(folder, *options, code=0):
    done = subprocess.run(command(folder, *options), capture_output=True, text=True, timeout=120)
    assert done.returncode == code, f"exit code {done.returncode}: {done.stderr}"
    return done


def cases_of(folder):
    return {path.name: path.read_text() for path in (folder / "cases").glob("*.json")}


def killed_after(folder, count):
    """Kills the study once so many cases are kept."""
    process = subprocess.Popen(command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.time() + 60
    while process.poll() is None and time.time() < until:
        if (folder / "cases").is_dir() and len(cases_of(folder)) >= count:
            break
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return cases_of(folder)


def check_results(folder):
    study = json.loads((folder / "study.json").read_text())
    assert study["failed"] == 0 and sorted(study["order"]) != study["order"]
    kinds = {curve["scaling"] for curve in study["curves"]}
    assert kinds == {"strong, fixed batch", "weak"}, kinds
    for curve in study["curves"]:
        assert [row["ranks"] for row in curve["rows"]] == [1, 2]
        assert all(row["efficiency"] > 0 for row in curve["rows"])
    for point in study["points"]:
        if point["kind"] == "steps":
            assert point["update_s"]["count"] == 2 and len(point["rank_loads"]) == point["ranks"]
            total = point["compute_s"] + point["exposed_s"] + point["data_wait_s"]
            assert total > 0 and point["imbalance_s"] <= point["exposed_s"] + 1e-9
    rows = list(csv.DictReader((folder / "study.csv").open()))
    assert {int(row["Rank"]) for row in rows} == {0, 1} and all(float(row["Computation_Time"]) > 0 for row in rows)
    page = (folder / "report.html").read_text()
    assert "Strong scaling" in page and "http://" not in page.replace("http://www.w3.org", "")
    return study


def check_prediction(folder):
    """A prediction is drawn into a study that is measured already, and changes nothing of that; wrong files are refused as plan does."""
    before, device = cases_of(folder), str(folder.parent / "desk.json")
    subprocess.run([VITRAIL, "bench", "calibrate", "--at-threads", "1", "--budget", "0", "--rounds", "1", "--gemm", "64x64x64", "--out", device],
                   capture_output=True, check=True, timeout=60)
    done = run(folder, "--cluster", "ethernet-1g", "--target", device)
    assert cases_of(folder) == before and "predicted against measured" in done.stdout, done.stdout
    study, cores = json.loads((folder / "study.json").read_text()), len(os.sched_getaffinity(0))
    for curve in study["curves"]:
        for row in curve["rows"]:
            assert (row["predicted_epoch_s"] is not None) == (row["ranks"] <= cores), row
    assert study["prediction"]["by"].startswith("plan --cluster: CPU hosts on 1 Gbit/s Ethernet, "), study["prediction"]
    for name in ("strong", "weak", "speedup", "weak-speedup"):
        assert "predicted: threads, batch 4" in (folder / f"{name}.svg").read_text(), name
    for wrong in (["--cluster", "nonet", "--target", device], ["--cluster", device, "--target", device], ["--cluster", "dgx-2", "--target", "nodev"]):
        plan = subprocess.run([VITRAIL, "plan", "-m", "vit_tiny_patch16_224", *wrong], capture_output=True, text=True, timeout=60)
        said = run(folder.parent / "wrong", *wrong, code=plan.returncode)
        assert plan.returncode == 65 and said.stderr == plan.stderr, (plan.stderr, said.stderr)
    assert not (folder.parent / "wrong").exists()


def main():
    with tempfile.TemporaryDirectory() as place:
        whole, broken = Path(place) / "whole", Path(place) / "broken"
        done = run(whole)
        printed = done.stdout
        assert "failed" not in done.stderr, done.stderr
        assert "speed-up" in printed and "Amdahl" in printed and "Recommended" in printed, printed
        first = check_results(whole)
        check_prediction(whole)
        kept = killed_after(broken, 3)
        assert 3 <= len(kept) < len(first["order"])
        run(broken)
        after = cases_of(broken)
        assert all(after[name] == text for name, text in kept.items()), "a kept case was measured again"
        second = check_results(broken)
        assert second["order"] == first["order"] and second["config"] == first["config"]
        assert "config.repeat" in run(broken, "--repeat", "3", code=64).stderr
        assert cases_of(broken) == after
        other = Path(place) / "vitrail"  # of the same version, and another build
        shutil.copy(VITRAIL, other)
        with other.open("ab") as file:
            file.write(b"x")
        said = subprocess.run([other, *command(broken)[1:]], capture_output=True, text=True, timeout=60)
        assert said.returncode == 64 and "a study by another build of Vitrail: vitrail_build.program is" in said.stderr, said.stderr
        assert cases_of(broken) == after
        (Path(place) / "mine").mkdir()
        (Path(place) / "mine" / "notes.txt").write_text("mine")
        assert "notes.txt" in run(Path(place) / "mine", code=73).stderr
        for bad in (["--ranks", "0"], ["--batches", "5"], ["--transports", "pigeons"], ["--strong", "sideways"], ["--models", "vit_tinny"]):
            said = subprocess.run(command(Path(place) / "bad", *bad), capture_output=True, text=True, timeout=60)
            assert said.returncode in (64, 2) and said.stderr, (bad, said.returncode, said.stderr)


main()
