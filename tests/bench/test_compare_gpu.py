"""The comparison on a GPU and the timing of whole training commands, without a GPU and without torch: stand-ins for the program
and for torch in processes of their own.  test_compare_gpu.py [CLASS]"""
import argparse
import io
import json
import os
import pathlib
import random
import sys
import tempfile
import textwrap
import types
import unittest
import xml.etree.ElementTree as xml
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import compare_gpu  # noqa: E402
import draw_shapes  # noqa: E402
import time_training  # noqa: E402
from peers import Peer, compare  # noqa: E402
from peers.chart import chart  # noqa: E402
from peers.ratios import points, ratio_plot  # noqa: E402

# Answers `bench`: 10 ms a run, in fp8 8, computing 1.5 of the model's 2 GFLOP; `train` leaves a run's log behind.
PROGRAM = """\
    #!/usr/bin/env python3
    import json, pathlib, sys
    args = sys.argv[1:]
    if args == ["--version"]:
        sys.exit(print("vitrail 9"))
    if args[0] == "train":
        rows = [{"kind": "train", "interval_s": 2.0}, {"kind": "train", "interval_s": 1.5}, {"kind": "eval", "top1": 0.75}]
        if "--empty" in args:
            rows = rows[:2]
        folder = pathlib.Path(args[args.index("--out") + 1])
        folder.mkdir(parents=True)
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))
        sys.exit("error: no such device" if "--fail" in args else 0)
    ms = 8.0 if "fp8" in args else 10.0
    print(json.dumps({"ms_median": ms, "ms_min": ms, "ms_p90": ms, "ms_max": ms, "runs": 4, "gflops": 1.5 / ms * 1e3,
                      "model_gflop": 2.0, "peak_gflops": 100.0, "memory_peak": 3 * 2**30, "logits": [0.0, 2.0]}))
    """

# Each mode takes a time of its own; one of them cannot start.
TORCH = """\
    import time
    class Peer:
        version = "2"
        def __init__(self, case):
            self.ms = {"default": 30, "graphs": 15}[case["mode"]]
            self.note = case["stream"]
        def run(self):
            time.sleep(self.ms / 1e3)
        def logits(self):
            return [0.0, 2.5]
        def peak_bytes(self):
            return 5 * 2**30
    def open(case):
        if case["mode"] == "autotune":
            raise ValueError("no compiler")
        return Peer(case)
    """


class OnGpu(unittest.TestCase):
    """What the tests share: the stand-in for the program, and its peers."""

    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        self.program = self.folder / "vitrail"
        self.program.write_text(textwrap.dedent(PROGRAM))
        self.program.chmod(0o755)
        (self.folder / "made_torch.py").write_text(textwrap.dedent(TORCH))
        jax = textwrap.dedent(TORCH).replace('{"default": 30, "graphs": 15}[case["mode"]]', "40")
        (self.folder / "made_jax.py").write_text(jax.replace('case["mode"] == "autotune"', "False"))

    def compare(self, case, stream, fp8=False, jax=False, modes=compare_gpu.MODES):
        options = types.SimpleNamespace(vitrail=str(self.program), modes=list(modes), rounds=2, seconds=0.0,
                                        limit=None, fp8=fp8, jax=jax)
        with mock.patch.object(compare_gpu, "TORCH", Peer("torch", "made_torch")), \
                mock.patch.object(compare_gpu, "JAX", Peer("jax", "made_jax")), \
                mock.patch.object(compare, "REST_SECONDS", 0), \
                mock.patch.dict(os.environ, PYTHONPATH=str(self.folder)):
            return compare_gpu.compare(compare_gpu.parse_case(case), stream, options, lambda _: None)

    def row(self, result, name):
        return next(row for row in result["rows"] if row["peer"] == name)


class Compared(OnGpu):
    def test_the_fastest_mode_counts_and_equal_work_is_said(self):
        result = self.compare("infer:m:4", "bf16")
        self.assertEqual(result["torch_best"], "torch graphs")
        self.assertEqual(result["missing"], {"torch autotune": "ValueError: no compiler"})
        ours, theirs = self.row(result, "vitrail"), self.row(result, "torch graphs")
        self.assertAlmostEqual(ours["speedup"]["ratio"], theirs["ms"]["median"] / 10)
        self.assertAlmostEqual(ours["speedup"]["equal_work"], 0.75 * ours["speedup"]["ratio"])
        self.assertNotIn("speedup", theirs)
        self.assertEqual((ours["bytes"], theirs["bytes"]), (3 * 2**30, 5 * 2**30))
        self.assertAlmostEqual(ours["logits"]["max_difference"], 0.5)
        json.dumps(result)

    def test_the_streams_are_those_named_and_the_commands_those_run(self):
        for stream, setting in (("f32", "train.low_residual=false"), ("bf16", "train.low_residual=true")):
            result = self.compare("train:m:64:384", stream)
            ours = self.row(result, "vitrail")
            self.assertIn(setting, ours["command"])
            for option, value in (("--image", "384"), ("--batch", "64"), ("--dtype", "bf16"), ("--device", "cuda")):
                self.assertEqual(ours["command"][ours["command"].index(option) + 1], value)
            self.assertEqual(self.row(result, "torch default")["note"], stream)
            text = compare_gpu.table(result)
            for part in (f"m at 384, training step, bf16 with {stream} residual stream", setting, "ran: ", "--seconds 0.0",
                         "f32 master weights", "torch autotune: none"):
                self.assertIn(part, text)

    def test_fp8_is_held_against_the_same_torch_in_the_bf16_stream_alone(self):
        result = self.compare("train:m:2", "bf16", fp8=True)
        fp8 = self.row(result, "vitrail fp8")
        self.assertIn("fp8", fp8["command"])
        self.assertAlmostEqual(fp8["speedup"]["ratio"], self.row(result, "torch graphs")["ms"]["median"] / 8)
        plain = self.compare("train:m:2", "f32", fp8=True, modes=["default"])
        self.assertNotIn("vitrail fp8", [row["peer"] for row in plain["rows"]])

    def test_jax_is_a_peer_of_its_own_beside_torch(self):
        result = self.compare("train:m:2", "bf16", jax=True)
        self.assertEqual(result["torch_best"], "torch graphs")
        ours, theirs = self.row(result, "vitrail"), self.row(result, "jax")
        self.assertAlmostEqual(ours["against_jax"]["ratio"], theirs["ms"]["median"] / 10)
        self.assertIn("vitrail against jax: ", compare_gpu.table(result))
        self.assertEqual([row["peer"] for row in compare_gpu.drawn(result)["rows"]], ["vitrail", "torch graphs", "jax"])


class Drawn(OnGpu):
    def test_chart_shows_ours_and_the_fastest_torch(self):
        result = compare_gpu.drawn(self.compare("infer:m:1", "bf16"))
        self.assertEqual([row["peer"] for row in result["rows"]], ["vitrail", "torch graphs"])
        texts = [t.text for t in xml.fromstring(chart([result], "gpu")).iter("{http://www.w3.org/2000/svg}text")]
        self.assertTrue(any("torch graphs" in t for t in texts))
        ratio = self.row(result, "vitrail")["speedup"]["ratio"]
        self.assertTrue(any(f"Vitrail {ratio:.2f}x" in t for t in texts))

    def test_cases_opened_together_are_those_timed(self):
        words = ["compare_gpu.py", "train:m:2", "infer:m:1", "--together", "--streams", "bf16", "--modes", "default", "--rounds", "1",
                 "--seconds", "0", "--vitrail", str(self.program), "--json", str(self.folder / "out.json")]
        about = {"gpu": "made", "torch": "2", "timm": "1", "date": "", "command": []}
        with mock.patch.object(compare_gpu, "TORCH", Peer("torch", "made_torch")), \
                mock.patch.object(compare_gpu, "about_this_run", lambda: about), \
                mock.patch.object(compare, "REST_SECONDS", 0), mock.patch.object(sys, "argv", words), \
                mock.patch("sys.stdout", io.StringIO()), mock.patch.dict(os.environ, PYTHONPATH=str(self.folder)):
            self.assertEqual(compare_gpu.main(), 0)
        cases = json.loads((self.folder / "out.json").read_text())["cases"]
        self.assertEqual([(c["work"], c["batch"], c["stream"]) for c in cases], [("train", 2, "bf16"), ("infer", 1, "bf16")])

    def test_ratios_are_drawn_against_tokens_and_batch(self):
        results = [self.compare("train:vit_base_patch16_224:8:1024", "f32", modes=["default"]),
                   self.compare("infer:vit_huge_patch14_224:1", "bf16", modes=["default"])]
        self.assertEqual([(point[1], point[2]) for point in points(results)], [(4097, 8), (257, 1)])
        drawn = xml.fromstring(ratio_plot(results, "gpu"))
        titles = [t.text for t in drawn.iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(sum("batch 8, 4097 tokens" in title for title in titles), 2, "a point in each panel")


class Commands(OnGpu):
    def test_cases(self):
        case = compare_gpu.parse_case("train:vit_base_patch16_224:8:1024")
        self.assertEqual((case["work"], case["batch"], case["image"]), ("train", 8, 1024))
        self.assertEqual(case["streams"], ("f32", "bf16"))
        self.assertEqual(compare_gpu.parse_case("train:m:8:384:bf16")["streams"], ("bf16",))
        self.assertEqual([compare_gpu.parse_case(text)["classes"] for text in ("train:m:8", "train:m:8:c17", "train:m:8:32:c9:bf16")],
                         [1000, 17, 9])
        for wrong in ("infer:m:1:f32", "infer:m:1:c17", "train:m:8:c", "train:m:f32", "train:m", "run:m:1", "infer:m:many", "infer:m:1:2:3"):
            with self.assertRaises(argparse.ArgumentTypeError):
                compare_gpu.parse_case(wrong)

    def test_drawn_shapes_are_cases_within_their_limits(self):
        limits = argparse.Namespace(tflop=20, gib=12)
        for work in ("train", "infer"):
            cases = [draw_shapes.draw(random.Random(seed), work, limits) for seed in range(40)]
            self.assertEqual(cases, [draw_shapes.draw(random.Random(seed), work, limits) for seed in range(40)])
            for case in map(compare_gpu.parse_case, cases):
                width, depth, patch = draw_shapes.MODELS[case["model"]]
                tokens = (case["image"] // patch) ** 2 + 1
                self.assertTrue(50 <= tokens <= 4097 and 1 <= case["batch"] <= 512, case)
                self.assertLessEqual(draw_shapes.flops(width, depth, tokens, case["batch"], work), 20e12)
                self.assertEqual(case["classes"] % 2, work == "train")

    def test_whole_command_and_training_steps(self):
        clock = iter((100.0, 109.25))
        row = time_training.timed_run(str(self.program), "c.json", self.folder / "run", ["--device", "cuda"],
                                      lambda: next(clock))
        self.assertEqual((row["whole_s"], row["training_s"], row["top1_percent"]), (9.25, 3.5, 75.0))
        self.assertEqual(row["command"][-2:], ["--device", "cuda"])
        self.assertIn("75.00 % top-1, whole command 9.2 s, training steps 3.5 s", time_training.line(row))

    def test_a_run_that_fails_gives_no_seconds(self):
        for flag, said in (("--fail", "no such device"), ("--empty", "no evaluation")):
            with self.assertRaises(SystemExit) as ended:
                time_training.timed_run(str(self.program), "c.json", self.folder / flag, [flag])
            self.assertIn(said, str(ended.exception))

    def test_options_after_two_dashes_are_the_programs(self):
        options = time_training.parse_options(["a.json", "b.json", "--", "--device", "cuda"])
        self.assertEqual(([str(c) for c in options.configs], options.more), (["a.json", "b.json"], ["--device", "cuda"]))
        with mock.patch("sys.stderr", io.StringIO()), self.assertRaises(SystemExit):
            time_training.parse_options(["--", "a.json"])


if __name__ == "__main__":
    unittest.main()
