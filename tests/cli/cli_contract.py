"""What scripts rely on: exit codes, clean stdout, suggestions, help pages, which setting wins.
cli_contract.py PROGRAM"""
import json
import os
import re
import subprocess
import unittest

from contract import CAT, PROGRAM, SMALL, TINY, Contract, vitrail

COMMANDS = ["predict", "explain", "train", "eval", "inspect", "convert", "verify", "plan", "bench infer", "bench train",
            "bench tune", "bench calibrate", "profile", "doctor"]
COMMON = ["--json", "--config", "--set", "--seed", "--threads", "--device", "--dtype", "--quiet", "--verbose",
          "--debug", "--help"]


class Words(Contract):
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

    def test_refusals_say_what_to_try(self):
        log, config, labels = self.tmp / "metrics.jsonl", self.tmp / "config.json", self.tmp / "data/labels.csv"
        log.write_text('{"kind":"train","step":1}\n{"kind":"train","step":2}\n')
        config.write_text('{"model_type": "vit"}')
        labels.parent.mkdir()
        labels.write_text("name;class\na.png;b\n")
        train = ["train", "--out", self.tmp / "run"]
        for code, *command in [(64, *train, "--max-time", "3x"), (64, "predict", "--device", "foo", CAT),
                               (65, *train, "--set", f"data.train=idx:{self.tmp / 'nix'}"),
                               (65, *train, "--set", f"data.train=folder:{labels.parent}"),
                               (65, "inspect", log), (65, "inspect", config)]:
            self.refused(code, "\n  try: ", *command)

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


if __name__ == "__main__":
    unittest.main()
