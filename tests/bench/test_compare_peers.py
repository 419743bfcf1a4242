"""The comparison with other engines, without any of them: its arithmetic, its tables, and a whole run with synthetic
peers in processes of their own."""
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest
import xml.etree.ElementTree as xml
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import compare_peers  # noqa: E402
from peers import NAMES, OURS, PEERS, Peer, chart, compare, report, stats  # noqa: E402
from peers.sides import Unavailable  # noqa: E402
from peers.vitrail import arguments  # noqa: E402

# A program that answers `bench` as Vitrail does: 10 ms an image and 50 of 100 GFLOP/s.
PROGRAM = """\
    #!/usr/bin/env python3
    import json, sys
    args = sys.argv[1:]
    if args == ["--version"]:
        sys.exit(print("vitrail 9"))
    if "int8" in args:
        sys.exit("error: not in int8\\n  try: f32")
    batch = int(args[args.index("--batch") + 1])
    ms = 10.0 * batch
    print(json.dumps({"ms_median": ms, "ms_min": ms - 1, "ms_p90": ms + 1, "ms_max": ms + 2, "runs": 4, "gflops": 50.0,
                      "model_gflop": 0.6, "peak_gflops": 100.0, "device": "synthetic", "logits": [0.0, 2.0, 1.0], "loss": 1.5}))
    """

# Peers of another process: each run sleeps, the second gives other logits, the third cannot start, the fourth dies.
PEER = """\
    import os, time
    class Peer:
        version, note = "1.0", "a note"
        def run(self):
            print("talk that must not be taken for an answer")
            time.sleep(0.002)
        def logits(self):
            return {"far": [0.0, 2.5, 1.0]}.get(KIND, [0.0, 2.0, 1.0004])
    def open(case):
        if KIND == "broken":
            raise ValueError("no such device\\nmore lines")
        if KIND == "dying":
            os._exit(3)
        peer = Peer()
        peer.note = case.get("onnx", "a note")
        return peer
    """


def rounds(*medians):
    return [{"median": m, "min": m - 1, "p90": m + 1, "max": m + 2, "count": 5} for m in medians]


def made_up_result(**changes):
    rows = [{"peer": OURS, "ms": stats.combine(rounds(10)), "img_per_s": 100.0, "peak_share": 0.5, "note": "",
             "peak_rss_bytes": 2**20, "vitrail_speedup": stats.speedup(rounds(10), rounds(10)),
             "logits": {"max_difference": 1e-6, "scale": 2, "same_argmax": True}},
            {"peer": "torch", "ms": stats.combine(rounds(15)), "img_per_s": 66.7, "peak_share": 1 / 3, "note": "<eager>",
             "peak_rss_bytes": 3 * 2**20, "vitrail_speedup": stats.speedup(rounds(15), rounds(10), share=0.9),
             "logits": {"max_difference": 0.25, "scale": 2, "same_argmax": False}}]
    return {"work": "infer", "model": "m", "image": None, "batch": 1, "threads": 2, "dtype": "f32", "rows": rows,
            "missing": {"openvino": "openvino is not installed"}, "peak_gflops": 100.0, "fastest_peer": "torch",
            "disagree": [], **changes}


class Statistics(unittest.TestCase):
    def test_spread(self):
        for times, median, p90 in [([3.0], 3, 3), ([4, 1, 3, 2], 2.5, 3.7), ([1, 2, 3, 4, 100], 3, 61.6)]:
            found = stats.spread(times)
            self.assertAlmostEqual(found["median"], median)
            self.assertAlmostEqual(found["p90"], p90)
            self.assertEqual((found["min"], found["max"], found["count"]), (min(times), max(times), len(times)))

    def test_one_slow_round_does_not_move_the_median(self):
        found = stats.combine(rounds(10, 11, 90))
        self.assertEqual((found["median"], found["min"], found["p90"], found["max"], found["count"]), (11, 9, 12, 92, 15))

    def test_speedup_is_their_time_over_ours(self):
        found = stats.speedup(rounds(20, 30, 40), rounds(10, 20, 10))
        self.assertEqual(found, {"ratio": 3.0, "min": 1.5, "max": 4.0, "equal_work": 3.0})
        self.assertEqual(stats.speedup(rounds(20), rounds(10), share=0.75)["equal_work"], 1.5)
        with self.assertRaises(ValueError):
            stats.speedup(rounds(1, 2), rounds(1))

    def test_fastest_is_of_the_others(self):
        self.assertEqual(stats.fastest({"vitrail": 1, "a": 3, "b": 2}, "vitrail"), "b")
        self.assertIsNone(stats.fastest({"vitrail": 1}, "vitrail"))

    def test_peak_share(self):
        self.assertAlmostEqual(stats.peak_share(flops=35e9, ms=700, peak_gflops=100), 0.5)

    def test_logits(self):
        reference = [0.0, 4.0, -8.0]
        for logits, same, agree in [([0.0, 4.0, -8.0], True, True), ([0.007, 4.0, -8.0], True, True),
                                    ([0.009, 4.0, -8.0], True, False), ([4.001, 4.0, -8.0], False, False),
                                    ([math.nan, 4.0, -8.0], False, False), ([0.0, 4.0, math.nan], False, False),
                                    ([0.0, 4.0, None], False, False)]:
            found = stats.logit_difference(reference, logits)
            self.assertEqual((found["same_argmax"], stats.agrees(found)), (same, agree), logits)
        with self.assertRaises(ValueError):
            stats.logit_difference(reference, [0.0])


class Shown(unittest.TestCase):
    def test_table(self):
        text = report.table(made_up_result())
        for part in ("m, inference, f32, 1 image, 2 threads", "50.0 %", "33.3 %", "1.50x", "1.35x", "3 MiB",
                     "2.5e-01, another class", "openvino: none, openvino is not installed", "peak 100.0 GFLOP/s",
                     "Vitrail is 1.50 times as fast as the fastest peer, torch (1.50 to 1.50 by round), "
                     "1.35 times at equal work"):
            self.assertIn(part, text)
        self.assertNotIn("1.00x", text)
        self.assertNotIn("RESULTS DIFFER", text)
        self.assertIn("RESULTS DIFFER: torch", report.table(made_up_result(disagree=["torch"])))

    def test_table_without_rows(self):
        text = report.table(made_up_result(rows=[], fastest_peer=None, peak_gflops=None))
        self.assertEqual(len(text.splitlines()), 2)

    def test_training_shows_the_first_loss(self):
        result = made_up_result(work="train", batch=8, image=96)
        for row in result["rows"]:
            row["first_loss"] = 6.91
            del row["logits"]
        text = report.table(result)
        self.assertIn("m at 96, training step, f32, 8 images", text)
        self.assertIn("6.9100", text)

    def test_columns_line_up(self):
        lines = report.aligned([["a", "1", "x"], ["long", "1000", ""]])
        self.assertEqual(lines, ["a        1  x", "long  1000"])

    def test_chart(self):
        image = xml.fromstring(chart.chart([made_up_result(model="<m>"), made_up_result(rows=[])], "cpu & date"))
        name = "{http://www.w3.org/2000/svg}"
        bars = [float(r.get("width")) for r in image.findall(name + "rect")[1:]]
        self.assertEqual(len(bars), 2)
        self.assertAlmostEqual(bars[0] / bars[1], 10 / 15, places=3)
        texts = [t.text for t in image.findall(name + "text")]
        self.assertIn("cpu & date", texts)
        self.assertTrue(any("(Vitrail 1.50x, 1.35x at equal work)" in t for t in texts), texts)
        same = made_up_result()
        same["rows"][1]["vitrail_speedup"] = stats.speedup(rounds(15), rounds(10))
        self.assertIn("(Vitrail 1.50x)</text>", chart.chart([same], ""))


class Cases(unittest.TestCase):
    def options(self, *words):
        with mock.patch.object(sys, "argv", ["compare_peers.py", *words]):
            return compare_peers.parse_options()

    def test_every_model_and_batch(self):
        found = compare_peers.cases(self.options("--model", "a", "b", "--batch", "1", "8", "--threads", "3"))
        self.assertEqual([(c["model"], c["batch"], c["threads"]) for c in found],
                         [("a", 1, 3), ("a", 8, 3), ("b", 1, 3), ("b", 8, 3)])

    def test_a_recipe_brings_its_model_and_batch(self):
        path = str(BENCH.parent / "configs/demo-fashion.json")
        case, = compare_peers.cases(self.options("--train", path))
        self.assertEqual((case["work"], case["batch"], case["fields"]["classes"]), ("train", 128, 10))
        words = arguments({**case, "batch": 32, "clip": 1})
        for setting in ("train.batch=32", "optim.clip_norm=1", "optim.name=adamw"):
            self.assertIn(setting, words)
        for option, value in [("--config", path), ("--classes", "10"), ("--batch", "32")]:
            self.assertEqual(words[words.index(option) + 1], value)

    def test_peers_by_name(self):
        self.assertEqual(self.options("--peers", "torch,vitrail").peers, ["torch", "vitrail"])
        done = subprocess.run([sys.executable, "-B", BENCH / "compare_peers.py", "--peers", "torhc"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown: torhc", done.stderr)

    def test_every_peer_has_its_module(self):
        self.assertEqual(len(set(NAMES)), len(PEERS))
        for peer in PEERS:
            self.assertIsNotNone(importlib.util.find_spec(peer.module), peer.name)


class WholeRun(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        self.program = self.folder / "vitrail"
        self.program.write_text(textwrap.dedent(PROGRAM))
        self.program.chmod(0o755)
        self.said = []

    def peer(self, kind, **more):
        (self.folder / f"made_{kind}.py").write_text(f"KIND = {kind!r}\n" + textwrap.dedent(PEER))
        return Peer(kind, f"made_{kind}", **more)

    def case(self, **changes):
        return {"work": "infer", "model": "m", "config": None, "fields": None, "image": None, "batch": 2, "threads": 1,
                "dtype": "f32", "clip": 0, "reference": None, "no_onnx": "", **changes}

    def options(self):
        return types.SimpleNamespace(vitrail=str(self.program), vitrail_args=[], rounds=3, seconds=0.0, limit=None)

    def run_case(self, peers, case):
        with mock.patch.object(compare, "prepare", lambda made, *_: made), \
                mock.patch.object(compare, "REST_SECONDS", 0), \
                mock.patch.dict(os.environ, PYTHONPATH=str(self.folder)):
            return compare.compare(peers, case, self.options(), self.folder, self.said.append)

    def test_all_run_and_the_odd_ones_are_named(self):
        kinds = [self.peer("near"), self.peer("far"), self.peer("broken"), self.peer("dying"),
                 self.peer("absent", packages=("no_such_package",)), self.peer("unable", lacks={"f32": "only in print"})]
        result = self.run_case([PEERS[0], *kinds], self.case())
        self.assertEqual([row["peer"] for row in result["rows"]], [OURS, "near", "far"])
        self.assertEqual(result["missing"]["broken"], "ValueError: no such device")
        self.assertIn("its process ended", result["missing"]["dying"])
        self.assertEqual(result["missing"]["absent"], "no_such_package is not installed")
        self.assertEqual(result["missing"]["unable"], "only in print")
        self.assertEqual(result["disagree"], ["far"])
        self.assertIn(result["fastest_peer"], ("near", "far"))
        ours, near, _ = result["rows"]
        self.assertEqual((ours["ms"]["median"], ours["ms"]["count"], ours["img_per_s"]), (20, 12, 100))
        self.assertAlmostEqual(ours["peak_share"], 0.5)
        self.assertGreaterEqual(near["ms"]["min"], 2.0)
        self.assertAlmostEqual(near["peak_share"], 1e3 * 0.6 / near["ms"]["median"] / 100)  # of the whole model
        self.assertEqual(len(near["rounds"]), 3)
        self.assertAlmostEqual(near["vitrail_speedup"]["ratio"], near["ms"]["median"] / 20)
        self.assertAlmostEqual(near["vitrail_speedup"]["equal_work"], near["ms"]["median"] / 20 / 0.6)  # 1 GFLOP of 0.6
        self.assertGreater(near["peak_rss_bytes"], 2**20)
        json.dumps(result)
        report.table(result)

    def test_every_peer_reads_the_file_of_its_form(self):
        kinds = [self.peer("near", onnx="whole"), self.peer("far", onnx="apart"),
                 self.peer("unable", onnx="third", lacks={"f32": "only in print"})]
        case, wanted = self.case(onnx={"whole": "a.onnx", "apart": "b.onnx"}), []
        with mock.patch.object(compare, "prepare", lambda made, _, forms: wanted.extend(forms) or made), \
                mock.patch.object(compare, "REST_SECONDS", 0), mock.patch.dict(os.environ, PYTHONPATH=str(self.folder)):
            result = compare.compare(kinds, case, self.options(), self.folder, self.said.append)
        self.assertEqual(wanted, ["apart", "whole"])
        self.assertEqual([row["note"] for row in result["rows"]], ["a.onnx", "b.onnx"])

    def test_a_model_that_could_not_be_exported(self):
        result = self.run_case([self.peer("near", onnx="apart")], self.case(no_onnx="no exporter"))
        self.assertEqual((result["rows"], result["missing"]), ([], {"near": "no exporter"}))

    def test_without_vitrail(self):
        self.program.unlink()
        result = self.run_case([PEERS[0], self.peer("near")], self.case())
        self.assertIn("no program at", result["missing"][OURS])
        self.assertNotIn("vitrail_speedup", result["rows"][0])
        report.table(result)

    def test_a_dtype_vitrail_refuses(self):
        result = self.run_case([PEERS[0]], self.case(dtype="int8"))
        self.assertEqual((result["rows"], result["missing"]), ([], {OURS: "not in int8"}))

    def test_training(self):
        result = self.run_case([PEERS[0]], self.case(work="train"))
        self.assertEqual(result["rows"][0]["first_loss"], 1.5)
        self.assertEqual(result["disagree"], [])

    def test_losses_are_held_together_where_all_start_alike(self):
        def row(name, loss, by_rule=True):
            return {"peer": name, "first_loss": loss, "starts_by_rule": by_rule}
        for rows, wanted in [([row("a", 7.0), row("b", 7.0069)], []), ([row("a", 7.0), row("b", 7.01)], ["a"]),
                             ([row("a", math.nan), row("b", 7.0)], ["a"]), ([row("a", 2.3, False), row("b", 7.0)], [])]:
            self.assertEqual(compare.disagreeing(rows), wanted)

    def test_rounds_take_turns(self):
        self.assertEqual([compare.order(["a", "b", "c"], number) for number in range(2)],
                         [["a", "b", "c"], ["b", "c", "a"]])
        self.assertEqual(compare.order([], 1), [])

    def test_a_peer_that_fails_later_is_left_out(self):
        class Failing:
            def time(self, _):
                raise Unavailable("out of memory")

        class Working:
            def time(self, _):
                return stats.spread([1.0])

        missing = {}
        found = compare.run_rounds({"bad": Failing(), "good": Working()}, missing, self.options(), self.said.append,
                                   rest=lambda _: None)
        self.assertEqual((list(found), len(found["good"]), missing), (["good"], 3, {"bad": "out of memory"}))

    def test_no_round_is_begun_after_the_limit(self):
        class Working:
            def time(self, _):
                return stats.spread([1.0])

        options = self.options()
        for limit, rounds in ((0.5, 1), (1.5, 2), (9.0, 3)):
            options.limit = limit
            clock = iter(range(9))
            found = compare.run_rounds({"one": Working()}, {}, options, self.said.append, rest=lambda _: None,
                                       clock=lambda: next(clock))
            self.assertEqual(len(found["one"]), rounds)


if __name__ == "__main__":
    unittest.main()
