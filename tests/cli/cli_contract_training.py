"""Training and evaluating with the real program.  cli_contract_training.py PROGRAM"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest
import unittest.mock

from contract import CAT, PROGRAM, ROOT, Contract, vitrail

RUN = {"model": {"image": 8, "patch": 4, "width": 16, "depth": 1, "heads": 2, "mlp": 32},
       "data": {"train": "synthetic:3x8x8x4x64"},
       "train": {"epochs": 2, "batch": 16, "log_every": 1, "tensorboard": False}, "optim": {"lr": 0.01}}


def catches(pid, number):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (number - 1) & 1


class Runs(Contract):
    def config(self, **sections):
        merged = {key: {**RUN.get(key, {}), **sections.get(key, {})} for key in {**RUN, **sections}}
        path = self.tmp / "tiny.json"
        path.write_text("// a comment\n" + json.dumps(merged))
        return path

    def train(self, config, *more):
        done = self.ok("train", "--config", config, "--out", self.tmp / "run", "--json", *more)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def start(self, config, out, *more, **settings):
        """A run that has begun: its process, with the first line it said read."""
        process = subprocess.Popen([PROGRAM, "train", "--config", config, "--out", out, "--json", *more],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)
        for clean_up in (process.stdout.close, process.stderr.close, process.wait, process.kill):
            self.addCleanup(clean_up)
        self.assertTrue(process.stdout.readline(), "it said nothing")
        return process

    def images(self, *classes):
        folder = os.path.join(os.fsencode(self.tmp), b"images-\xe9")
        for name in classes:
            os.makedirs(os.path.join(folder, name))
            for number in range(6):
                shutil.copy(CAT, os.path.join(folder, name, b"%d.png" % number))
        return folder


class Training(Runs):
    def test_train_and_eval(self):
        lines = self.train(self.config())
        self.assertEqual([line["step"] for line in lines if line["kind"] == "train"], list(range(1, 9)))
        run = self.tmp / "run"
        logged = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for line in lines:
            self.assertIn(line, logged)
        answer = self.json("eval", "-m", run)
        self.assertLessEqual({"top1", "top5", "count", "loss", "classes"}, set(answer))
        self.assertEqual(answer["top1"], max(line["top1"] for line in lines if line["kind"] == "eval"))
        self.assertEqual(self.ok("eval", "-m", run, "--quiet").stderr, "")
        self.assertEqual(self.ok("predict", "-m", run, CAT, "--quiet").stderr, "")
        self.assertEqual(self.ok("train", "--config", self.config(), "--out", self.tmp / "two", "--quiet").stderr, "")

    def test_train_refuses(self):
        self.refused(64, "train.epochs\\?", "train", "--config", self.config(), "--set", "train.epoch=3")
        self.refused(64, "epochs\\?", "train", "--config", self.config(train={"epoch": 3}))
        self.refused(64, "train.smoothing is 2", "train", "--config", self.config(train={"smoothing": 2}), "--out",
                     self.tmp / "no")
        self.assertFalse((self.tmp / "no").exists(), "a mistake in the config must not make a folder")
        self.refused(65, "/nowhere", "train", "--config", self.config(data={"train": "folder:/nowhere"}), "--out",
                     self.tmp / "no")
        (self.tmp / "file").write_text("x")
        config = self.config()
        self.refused(73, "file", "train", "--config", config, "--out", self.tmp / "file/below")
        sealed = self.tmp / "sealed"
        sealed.mkdir(mode=0o555)
        if os.geteuid() != 0:
            self.refused(73, "sealed", "train", "--config", config, "--out", sealed / "run")
            self.refused(73, "sealed", "train", "--config", config, "--out", sealed)
        self.train(self.config())
        self.refused(64, "already holds a run(.|\n)*--resume", "train", "--config", config, "--out", self.tmp / "run")

    def test_plan_of_a_config_is_what_train_holds(self):
        config = self.config(train={"micro_batch": 4})
        answer = self.json("plan", "--config", config, "--threads", "1")
        self.assertEqual((answer["micro_batch"], answer["accumulation"], answer["steps"]), (4, 4, 8))
        memory = answer["memory"]
        self.assertEqual(sum(v for k, v in memory.items() if k != "peak"), memory["peak"])
        lines = self.train(config, "--threads", "1")
        self.assertEqual({line["memory_bytes"] for line in lines if line["kind"] == "train"}, {memory["peak"]})
        self.refused(64, "train.epochs\\?", "plan", "--config", self.config(train={"epoch": 3}))
        self.assertEqual(self.json("plan", "--config", self.tmp / "run/config.json", "--threads", "1"), {
            **answer, **{key: unittest.mock.ANY for key in ("memory_available", "peak_gflops", "update_s", "total_s", "epoch_s",
                                                             "largest_micro_batch")}})

    def test_every_recipe_can_be_planned(self):
        # On a machine whose speed is known: to measure that of this one takes longer than a plan.
        known = ROOT / "configs/devices/xeon-amx-16.json"
        recipes = sorted((ROOT / "configs").glob("*.json"))
        self.assertGreater(len(recipes), 3)
        for recipe in recipes:
            said = re.search(r'"classes": (\d+)', recipe.read_text())  # where not, those of data that are not here
            answer = self.json("plan", "--config", recipe, "--classes", said[1] if said else "10", "--batch", "16", "--target", known,
                               env={"VITRAIL_MODELS": str(ROOT / "models")})
            self.assertGreater(answer["memory"]["gradients"], 0, recipe)

    def test_names_that_are_not_utf8(self):
        config = self.config(train={"epochs": 1, "batch": 4})
        command = [PROGRAM, "train", "--config", config, "--set"]
        folder, link = self.images(b"chat", b"chien"), self.tmp / "images"
        done = subprocess.run([*command, b"data.train=folder:" + folder, "--out", self.tmp / "run"], capture_output=True)
        self.assertEqual(done.returncode, 64, "config.json could not keep the path")
        self.assertRegex(done.stderr, rb"data.train is (.|\n)*images-\\xe9(.|\n)*try: (.|\n)*ln -s")
        self.assertFalse((self.tmp / "run").exists())
        link.symlink_to(os.fsdecode(folder))
        done = subprocess.run([*command, f"data.train=folder:{link}", "--out", self.tmp / "run"], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(vitrail("eval", "-m", self.tmp / "run").returncode, 0)
        os.rename(self.tmp / "run", os.path.join(os.fsencode(self.tmp), b"run-\xe9"))
        done = subprocess.run([PROGRAM, "eval", "-m", os.path.join(os.fsencode(self.tmp), b"run-\xe9"), "--data",
                               b"folder:" + folder, "--report", self.tmp / "page.html"], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("html", (self.tmp / "page.html").read_text())
        os.rename(os.path.join(folder, b"chat"), os.path.join(folder, b"b\xeate"))
        done = subprocess.run([*command, f"data.train=folder:{link}", "--out", self.tmp / "two"], capture_output=True)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn(rb"b\xeate", done.stderr)
        self.assertFalse((self.tmp / "two").exists())


class Stopping(Runs):
    def test_train_stops_on_request_and_goes_on(self):
        config = self.config(train={"epochs": 100000})
        for name in ("SIGTERM", "SIGINT", "SIGUSR1"):
            out = self.tmp / name
            with subprocess.Popen([PROGRAM, "train", "--config", config, "--out", out, "--json"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                first = process.stdout.readline()
                process.send_signal(getattr(signal, name))
                rest, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 75, err)
            self.assertIn("--resume", err)
            last = [json.loads(line) for line in (first + rest).splitlines()][-1]
            self.assertEqual((last["kind"], last["what"]), ("event", "stopped"))
            more = self.ok("train", "--config", config, "--out", out, "--json", "--resume", "--set",
                           f"train.steps={last['step'] + 2}")
            steps = [line["step"] for line in map(json.loads, more.stdout.splitlines()) if line["kind"] == "train"]
            self.assertEqual(steps, [last["step"] + 1, last["step"] + 2])

    def test_batch_systems_send_several_signals(self):
        config = self.config(train={"epochs": 100000})
        pairs = [("USR1", "TERM"), ("TERM", "TERM"), ("HUP", "HUP"), ("XCPU", "TERM"), ("INT", "TERM"), ("INT", "INT")]
        for index, (first, second) in enumerate(pairs):
            process = self.start(config, self.tmp / str(index))
            process.send_signal(getattr(signal, "SIG" + first))
            time.sleep(0.01)
            process.send_signal(getattr(signal, "SIG" + second))
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 75, f"{first} {second}: {err}")

    def test_what_was_ignored_stays_ignored(self):
        process = self.start(self.config(train={"epochs": 100000}), self.tmp / "run",
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        self.assertIsNone(process.poll(), "nohup")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75)


class Ending(Runs):
    def test_only_a_late_second_interrupt_ends_at_once(self):
        slow = self.config(train={"batch": 4000000, "micro_batch": 8, "steps": 10})  # an update takes minutes
        out = self.tmp / "slow"
        process = subprocess.Popen([PROGRAM, "train", "--config", slow, "--out", out], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while not (out / "checkpoints/step-00000000").exists():
            self.assertIsNone(process.poll(), "it ended by itself")
            time.sleep(0.01)
        time.sleep(2)  # before its first update a run stops at the first signal
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            process.send_signal(number)
            time.sleep(0.05)
        time.sleep(1)
        self.assertIsNone(process.poll(), "it must wait for its update")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        self.assertIsNone(process.poll(), "SIGTERM never ends it at once")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(10), -signal.SIGINT)

    def test_train_has_a_time_limit(self):
        done = vitrail("train", "--config", self.config(train={"epochs": 100000}), "--out", self.tmp / "run", "--max-time",
                       "0.2s")
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn("time limit", done.stderr)

    def test_eval_stops_on_request(self):
        self.train(self.config())
        with subprocess.Popen([PROGRAM, "eval", "-m", self.tmp / "run", "--data", "synthetic:3x64x64x4x50000000"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while not catches(process.pid, signal.SIGTERM):
                self.assertIsNone(process.poll(), "it ended by itself")
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (75, ""), err)


if __name__ == "__main__":
    unittest.main()
