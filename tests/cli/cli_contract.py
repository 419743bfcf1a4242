"""Runs the real program as a user would and checks what scripts rely on: exit codes, clean stdout, JSON keys,
suggestions, help pages.  cli_contract.py PROGRAM"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

PROGRAM = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "tests/golden/models/hf_single"
CAT = ROOT / "examples/images/chelsea.png"
COMMANDS = ["predict", "explain", "train", "eval", "inspect", "convert", "verify", "plan", "bench infer", "bench train",
            "bench tune", "bench calibrate", "profile", "doctor"]
COMMON = ["--json", "--config", "--set", "--seed", "--threads", "--device", "--dtype", "--quiet", "--verbose",
          "--debug", "--help"]
RUN = {"model": {"image": 8, "patch": 4, "width": 16, "depth": 1, "heads": 2, "mlp": 32},
       "data": {"train": "synthetic:3x8x8x4x64"},
       "train": {"epochs": 2, "batch": 16, "log_every": 1, "tensorboard": False}, "optim": {"lr": 0.01}}
SMALL = ["--model", "vit_tiny_patch16_224", "--weights", "rule", "--image", "32", "--seconds", "0", "--threads", "1"]


def vitrail(*arguments, env=None, stdin="", cwd=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("VITRAIL_")}
    clean["XDG_CONFIG_HOME"] = "/nonexistent"  # what was tuned on this machine is no part of a test
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, input=stdin, cwd=cwd,
                          env={**clean, **(env or {})}, timeout=120)


def catches(pid, number):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (number - 1) & 1


class Contract(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vitrail-contract-")
        self.addCleanup(folder.cleanup)
        self.tmp = pathlib.Path(folder.name)

    def ok(self, *arguments, **more):
        done = vitrail(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def json(self, *arguments, **more):
        return json.loads(self.ok(*arguments, "--json", **more).stdout)

    def refused(self, code, text, *arguments, **more):
        done = vitrail(*arguments, **more)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}")
        self.assertRegex(done.stderr, text)
        self.assertTrue(done.stderr.startswith("error: "), done.stderr)
        self.assertEqual(done.stdout, "", "an error must leave stdout clean")
        self.assertLess(len(done.stderr.splitlines()), 20, "one screen")
        return done

    # --- help and version

    def test_overview_names_every_command(self):
        page = self.ok("--help").stdout
        for command in COMMANDS:
            self.assertRegex(page, rf"(?m)^  {command} ")

    def test_help_mentions_each_flag(self):
        for command in COMMANDS:
            page = self.ok(*command.split(), "--help").stdout
            for flag in COMMON:
                self.assertIn(flag, page, command)
            self.assertLess(page.index("Examples:"), page.index("Common options:"))
            self.assertNotIn("\033", page)

    def test_help_by_other_words(self):
        for command in COMMANDS:
            self.assertEqual(self.ok("help", *command.split()).stdout, self.ok(*command.split(), "--help").stdout)
        self.assertIn("vitrail bench infer", self.ok("bench", "--help").stdout)
        self.assertEqual(self.ok("bench", "-h").stdout, self.ok("help", "bench").stdout)
        self.assertEqual(self.ok("help").stdout, self.ok("--help").stdout)

    def test_flags_of_the_help_exist(self):
        for command in COMMANDS:
            flags = re.findall(r"(?m)^  (?:-\w, |    )(--[\w-]+)(?: (\S+))?", self.ok(*command.split(), "--help").stdout)
            self.assertGreater(len(flags), len(COMMON) - 1)
            for flag, value in flags:
                # A wrong value behind it: the flag itself was understood, and nothing runs.
                done = vitrail(*command.split(), flag, *([] if value else ["--seed", "x"]))
                expected = "needs a value" if value else "Usage" if flag == "--help" else "--seed expects"
                self.assertIn(expected, done.stdout + done.stderr, f"{command} {flag}")

    def test_version(self):
        self.assertRegex(self.ok("--version").stdout, r"^vitrail \d+\.\d+\.\d+\n$")

    # --- refusals

    def test_typos_get_a_suggestion(self):
        self.refused(64, "vitrail predict\\?", "predcit")
        self.refused(64, "vitrail doctor\\?", "docter")
        self.refused(64, "bench infer", "bench")
        self.refused(64, "vitrail bench infer\\?", "bench", "infr")
        self.refused(64, "--top-k\\?", "predict", "--top-kk", "5", CAT)
        self.refused(64, "timm\\?", "convert", "a", "b", "--to", "tim")
        self.refused(64, "top-k\\?", "predict", "--set", "topk=5", CAT)
        self.refused(64, "vit_base_patch16_224", "plan", "--model", "vit_bse_patch16_224")
        self.refused(64, "options come after the command", "--json", "doctor")
        done = vitrail()
        self.assertEqual((done.returncode, done.stdout), (64, ""))

    def test_wrong_values(self):
        self.refused(64, "whole number", "predict", "-k", "0", CAT)
        self.refused(64, "needs IMAGE", "predict")
        self.refused(64, "does not take", "doctor", "something")
        self.refused(64, "f32 only", "doctor", "--dtype", "bf16")
        self.refused(64, "int8", "predict", "--dtype", "f16", CAT)
        self.refused(64, "cpu or cuda", "predict", "--device", "tpu", CAT)
        self.refused(69, "CUDA cannot be used", "predict", "--device", "cuda:0", CAT)
        self.refused(64, "does not divide", "plan", *SMALL[:4], "--image", "33")
        self.refused(64, "heads", "plan", *SMALL[:4], "--set", "model.heads=5")
        self.refused(64, "instruction set", "plan", *SMALL[:4], "--isa", "sse99")

    def test_missing_and_broken_files_are_named(self):
        self.refused(65, "no-such-model", "predict", "-m", "no-such-model", CAT)
        self.refused(65, "no-such.png", "predict", "-m", TINY, "no-such.png")
        self.refused(65, "no-such", "inspect", "no-such.safetensors")
        self.refused(64, "no-such.json", "doctor", "--config", "no-such.json")
        broken = self.tmp / "broken.png"
        broken.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 40)
        self.refused(65, "broken.png", "predict", "-m", TINY, broken)
        for name in ("cut.safetensors", "cut.npz", "cut.pth"):
            (self.tmp / name).write_bytes(b"PK\x03\x04" + b"\xff" * 60)
            self.refused(65, name, "inspect", self.tmp / name)

    def test_an_error_is_told_once(self):
        done = self.refused(65, "no-such", "predict", "-m", "no-such-model", CAT, "--json")
        self.assertEqual(done.stderr.count("error"), 1, done.stderr)
        done = vitrail("predict", "-m", TINY, "no-such.png", "--json")
        self.assertEqual(done.returncode, 65)
        self.assertEqual(json.loads(done.stdout)["image"], "no-such.png")
        self.assertEqual(done.stderr.count("no-such.png"), 1, done.stderr)

    def test_cannot_write(self):
        blocked = self.tmp / "file"
        blocked.write_text("x")
        self.refused(73, "already exists(.|\n)*--force", "convert", TINY, self.tmp, "--to", "hf")
        self.refused(73, "file", "explain", "-m", TINY, CAT, "--out", blocked / "below")
        if os.path.exists("/dev/full"):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, "doctor"], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 73, done.stderr)

    def test_a_reader_that_leaves_is_no_error(self):
        process = subprocess.Popen([PROGRAM, "inspect", TINY, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        self.assertEqual(process.wait(), 0)

    # --- precedence

    def test_flag_over_environment_over_config(self):
        config = self.tmp / "c.json"
        config.write_text('{"top-k": 1, // comment\n "explain": {"method": "mean"}}')
        base = ["predict", "-m", TINY, CAT]
        count = lambda *more, env=None: len(self.json(*base, *more, env=env)["top"])
        self.assertEqual(count("--config", config), 1)
        self.assertEqual(count("--config", config, env={"VITRAIL_TOP_K": "2"}), 2)
        self.assertEqual(count("--config", config, "-k", "3", env={"VITRAIL_TOP_K": "2"}), 3)
        config.write_text('{"top-kk": 1}')
        self.refused(64, "top-kk(.|\n)*top-k\\?", *base, "--config", config)
        config.write_text('{"top-k": 1')
        self.refused(64, "c.json:1", *base, "--config", config)

    # --- the commands

    def test_predict(self):
        done = self.ok("predict", "-m", TINY, CAT, ROOT / "examples/images/rocket.jpg", "--json", "-k", "3")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([pathlib.Path(line["image"]).name for line in lines], ["chelsea.png", "rocket.jpg"])
        for line in lines:
            self.assertEqual(len(line["top"]), 3)
            self.assertEqual(set(line["top"][0]), {"class", "label", "prob"})
            probs = [top["prob"] for top in line["top"]]
            self.assertEqual(probs, sorted(probs, reverse=True))
        self.assertEqual(done.stderr, "")
        listed = self.ok("predict", "-m", TINY, "-", "--json", "-k", "3", stdin=f"{CAT}\n")
        self.assertEqual(json.loads(listed.stdout), lines[0])

    def test_predict_does_not_depend_on_batch_or_threads(self):
        images = ROOT / "examples/images"
        runs = [self.ok("predict", "-m", TINY, images, "--json", "--batch", b, "--threads", t).stdout
                for b, t in ((1, 1), (3, 2), (8, 1))]
        self.assertEqual(len(runs[0].splitlines()), 5)
        self.assertEqual(len(set(runs)), 1)

    def test_predict_goes_on_past_bad_pictures(self):
        bad = self.tmp / "bad.jpg"
        bad.write_text("no picture")
        given = [bad, CAT, "gone.png", CAT]
        for words, stdin in ((given, ""), (["-"], "\n".join(map(str, given))), (["@" + str(self.tmp / "list")], "")):
            (self.tmp / "list").write_text("\n".join(map(str, given)))
            done = vitrail("predict", "-m", TINY, *words, "--json", "--quiet", stdin=stdin)
            self.assertEqual(done.returncode, 65)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([line["image"] for line in lines], list(map(str, given)))
            self.assertEqual([set(line) - {"image"} for line in lines], [{"error"}, {"top"}] * 2)
            self.assertEqual(done.stderr.count("gone.png"), 1, done.stderr)
            self.assertIn("2 of 4", done.stderr)
        self.refused(65, "@.*list", "predict", "-m", TINY, self.tmp / "list")

    def test_numbers_that_are_none_are_refused(self):
        broken = self.tmp / "nan"
        shutil.copytree(TINY, broken, copy_function=shutil.copyfile)
        weights = broken / "model.safetensors"
        data = bytearray(weights.read_bytes())
        size = int.from_bytes(data[:8], "little")
        begin = json.loads(data[8:8 + size])["classifier.bias"]["data_offsets"][0]
        data[8 + size + begin:8 + size + begin + 4] = b"\0\0\xc0\x7f"
        weights.write_bytes(data)
        self.refused(66, "NaN(.|\n)*chelsea.png", "predict", "-m", broken, CAT)
        done = vitrail("predict", "-m", broken, CAT, "gone.png", "--json")
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (66, 2), done.stderr)
        self.refused(66, "NaN(.|\n)*chelsea.png", "explain", "-m", broken, CAT, "--out", self.tmp / "out")
        self.ok("predict", "-m", broken, CAT, "--embed")

    def test_predict_stops_on_request(self):
        listed = self.tmp / "list"
        listed.write_text(f"{CAT}\n" * 20000)
        for name in ("SIGINT", "SIGTERM"):
            with subprocess.Popen([PROGRAM, "predict", "-m", TINY, f"@{listed}", "--json", "--batch", "4"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                first = process.stdout.readline()
                process.send_signal(getattr(signal, name))
                out, err = process.stdout.read(), process.stderr.read()
            self.assertEqual(process.returncode, 75, err)
            self.assertIn("stopped on request", err)
            lines = [json.loads(line) for line in (first + out).splitlines()]
            self.assertEqual(len(lines) % 4, 0)
            self.assertLess(len(lines), 20000)

    def test_embed(self):
        answer = self.json("predict", "-m", TINY, "--embed", CAT)
        self.assertEqual(len(answer["embedding"]), json.loads((TINY / "config.json").read_text())["hidden_size"])
        path, numbers = self.ok("predict", "-m", TINY, "--embed", CAT).stdout.split("\t")
        self.assertEqual((path, len(numbers.split())), (str(CAT), len(answer["embedding"])))

    def test_check_against_the_reference(self):
        self.assertRegex(self.ok("predict", "-m", TINY, CAT, "--check", "ref").stderr, "[1-9][0-9]* nodes agree")
        self.assertEqual(self.ok("predict", "-m", TINY, CAT, "--backend", "ref").stderr, "")
        self.refused(64, "itself", "predict", "-m", TINY, CAT, "--check", "ref", "--backend", "ref")

    def test_an_architecture_is_no_model(self):
        self.refused(65, "is an architecture(.|\n)*weight file", "predict", "-m", "vit_huge_patch14_224", CAT)

    def test_orientation_is_told(self):
        exif = b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
        turned = self.tmp / "turned.jpg"
        plain = (ROOT / "examples/images/rocket.jpg").read_bytes()
        turned.write_bytes(plain[:2] + exif + plain[2:])
        self.assertIn("EXIF orientation 6 ignored", self.ok("predict", "-m", TINY, turned, "-v").stderr)
        self.assertEqual(self.ok("predict", "-m", TINY, turned).stderr, "")

    def test_unknown_environment_is_told(self):
        done = self.ok("predict", "-m", TINY, CAT, env={"VITRAIL_TOPK": "2", "VITRAIL_MODELS": "x"})
        self.assertIn("VITRAIL_TOPK; did you mean VITRAIL_TOP_K?", done.stderr)
        self.assertEqual(done.stderr.count("warning"), 1)

    def test_explain(self):
        out = self.tmp / "out"
        answer = self.json("explain", "-m", TINY, CAT, "--out", out)
        names = [row["name"] for row in answer["maps"]]
        self.assertEqual(names[:3], ["mean", "rollout", "head-00"])
        for row in answer["maps"]:
            self.assertTrue(pathlib.Path(row["file"]).read_bytes().startswith(b"\x89PNG"))
            self.assertTrue(0 <= row["spread"] <= 1)
        self.assertTrue((out / "sheet.png").exists())
        self.assertEqual(json.loads((out / "explain.json").read_text())["image"], str(CAT))
        settings = json.loads((out / "explain.json").read_text())["settings"]
        self.assertEqual((settings["method"], settings["preprocess"]["height"]), ("all", settings["model"]["image_height"]))
        single = self.ok("explain", "-m", TINY, CAT, "--out", out, "--method", "rollout").stdout
        self.assertIn("overlay of the rollout", single)
        self.assertNotIn("block", single)
        self.refused(64, "takes no --layer", "explain", "-m", TINY, CAT, "--method", "rollout", "--layer", "0")
        self.refused(64, "blocks 0 to", "explain", "-m", TINY, CAT, "--layer", "99", "--out", out)

    def test_inspect(self):
        answer = self.json("inspect", TINY, "--stats")
        self.assertEqual(answer["total"]["tensors"], len(answer["tensors"]))
        self.assertEqual(answer["model"]["dialect"], "hf")
        self.assertEqual(answer["model"]["params"], answer["total"]["elems"])
        for tensor in answer["tensors"]:
            self.assertLessEqual(tensor["min"], tensor["max"])
            self.assertEqual((tensor["nan"], tensor["inf"]), (0, 0))
        some = self.json("inspect", TINY, "--filter", "*bias")
        self.assertTrue(some["tensors"] and all(t["name"].endswith("bias") for t in some["tensors"]))
        self.assertIn("parameters", self.ok("inspect", TINY).stdout)

    def test_inspect_works_on_what_is_no_vit(self):
        header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        path = self.tmp / "other.safetensors"
        path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0\0\0\0\0\xc0\x7f")
        answer = self.json("inspect", path, "--stats")
        self.assertIsNone(answer["model"])
        self.assertEqual(answer["tensors"][0]["nan"], 1)

    def test_convert_round_trip_and_verify(self):
        step = TINY
        for to, name in (("timm", "t.safetensors"), ("google", "g.npz"), ("torchvision", "v.safetensors"), ("hf", "h")):
            target = self.tmp / name
            answer = self.json("convert", step, target, "--to", to)
            self.assertEqual((answer["max_difference"], answer["kept"], answer["changed"]), (0, True, []), to)
            self.assertTrue(self.json("verify", TINY, target, "--picture", CAT)["same"])
            step = target
        half = self.tmp / "half"
        answer = self.json("convert", TINY, half, "--dtype", "f16")
        self.assertTrue(0 < answer["max_difference"] < 0.01)
        self.json("convert", TINY, half, "--dtype", "bf16", "--force")
        self.refused(64, "same", "convert", half, half, "--force")

    def test_verify_names_the_first_layer(self):
        other = self.tmp / "other"
        shutil.copytree(TINY, other, copy_function=shutil.copyfile)
        config = json.loads((other / "config.json").read_text())
        config["layer_norm_eps"] = 0.5
        (other / "config.json").write_text(json.dumps(config))
        done = vitrail("verify", TINY, other, "--json")
        self.assertEqual(done.returncode, 2, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["same"], answer["first"]), (False, "blocks.0"))
        self.assertTrue(any("norm_eps" in line for line in answer["card"]))
        self.assertIn("differ from blocks.0 on", vitrail("verify", TINY, other).stdout)
        self.assertTrue(self.ok("verify", TINY, TINY).stdout.endswith("A and B compute the same\n"))

    def test_plan(self):
        answer = self.json("plan", "--model", "vit_base_patch16_224", "--weights", "rule", "--batch", "2")
        self.assertEqual(answer["params"], 86567656)
        self.assertAlmostEqual(answer["macs"] / 1e9, 17.564, delta=0.005)
        memory = answer["memory"]
        self.assertEqual(sum(v for k, v in memory.items() if k != "peak"), memory["peak"])
        self.assertGreaterEqual(memory["parameters"], 4 * answer["params"])
        self.assertGreater(answer["largest_batch"], 0)
        self.assertIn("blocks.0.attn.qkv", self.ok("plan", *SMALL[:6], "--dump-after", "record").stdout)

    def test_bench(self):
        answer = self.json("bench", "infer", *SMALL, "--batch", "2", "--logits")
        for key in ("img_per_s", "ms_median", "ms_p90", "ms_min", "gflops", "peak_fraction"):
            self.assertGreater(answer[key], 0, key)
        self.assertEqual(len(answer["logits"]), 1000)
        saved = self.tmp / "saved.json"
        saved.write_text(json.dumps({**answer, "ms_median": answer["ms_median"] * 1e6}))
        self.assertIn("speedup", self.json("bench", "infer", *SMALL, "--batch", "2", "--compare", saved))
        saved.write_text(json.dumps({**answer, "ms_median": answer["ms_median"] / 1e6}))
        self.assertEqual(vitrail("bench", "infer", *SMALL, "--batch", "2", "--compare", saved).returncode, 2)

    def test_bench_train(self):
        answer = self.json("bench", "train", *SMALL, "--batch", "2", "--classes", "10", "--steps", "2")
        for key in ("img_per_s", "ms_median", "gflops", "peak_fraction", "memory_peak", "loss"):
            self.assertGreater(answer[key], 0, key)
        self.assertIn("GFLOP/s", self.ok("bench", "train", *SMALL, "--steps", "1", "--batch", "1").stdout)

    def test_tune_and_calibrate(self):
        home = {"XDG_CONFIG_HOME": str(self.tmp)}
        done = vitrail("bench", "--tune", "--product", "5x576x192", "--rounds", "1", "--threads", "1", env=home)
        self.assertEqual(done.returncode, 0, done.stderr)
        table = next(self.tmp.glob("vitrail/kernels-*.json"))
        self.assertIn("kernels by " + str(table), vitrail("profile", *SMALL, "-v", env=home).stderr)
        table.write_text("{")
        answer = vitrail("profile", *SMALL, "-v", env=home)
        self.assertEqual(answer.returncode, 0)
        self.assertIn("is not used", answer.stderr)
        self.assertNotIn("is not used", vitrail("profile", *SMALL, "-v", "--kernels", "none", env=home).stderr)
        device = self.tmp / "desk.json"
        self.ok("bench", "--calibrate", "--out", device, "--product", "20x64x32", "--threads", "1")
        self.assertGreater(self.json("plan", *SMALL[:6], "--target", device)["run_s"], 0)

    def test_profile(self):
        answer = self.json("profile", *SMALL, "--no-fuse")
        parts = {row["name"] for row in answer["parts"]}
        self.assertLessEqual({"embeddings", "layer norm 1", "attention", "MLP", "residual 2"}, parts)
        self.assertGreater(sum(row["flops"] for row in answer["operations"]), 0)
        self.assertIn("of peak", self.ok("profile", *SMALL).stdout)

    def test_doctor(self):
        answer = self.json("doctor")
        self.assertGreater(answer["cpu"]["peak_gflops"], 0)
        self.assertFalse(answer["backends"]["cuda"])
        self.assertIn("libpng", [row["name"] for row in answer["libraries"]])
        plain = self.ok("doctor", env={"VITRAIL_MODELS": str(TINY.parent)})
        self.assertIn("hf_single", plain.stdout)
        self.assertNotIn("\033", plain.stdout)

    # --- training

    def config(self, **sections):
        merged = {key: {**RUN.get(key, {}), **sections.get(key, {})} for key in {**RUN, **sections}}
        path = self.tmp / "tiny.json"
        path.write_text("// a comment\n" + json.dumps(merged))
        return path

    def train(self, config, *more):
        done = self.ok("train", "--config", config, "--out", self.tmp / "run", "--json", *more)
        return [json.loads(line) for line in done.stdout.splitlines()]

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
            **answer, **{key: unittest.mock.ANY for key in ("memory_available", "peak_gflops", "update_s", "total_s",
                                                             "largest_micro_batch")}})

    def test_every_recipe_can_be_planned(self):
        recipes = sorted((ROOT / "configs").glob("*.json"))
        self.assertGreater(len(recipes), 3)
        for recipe in recipes:
            answer = self.json("plan", "--config", recipe, "--classes", "10", "--batch", "16", env={
                "VITRAIL_MODELS": str(ROOT / "models")})
            self.assertGreater(answer["memory"]["gradients"], 0, recipe)

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

    def test_quiet_says_nothing(self):
        self.assertEqual(self.ok("profile", *SMALL, "--quiet").stderr, "")
        self.assertNotEqual(self.ok("profile", *SMALL).stderr, "")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
