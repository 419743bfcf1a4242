"""bench/predict_ranks.py, compare_ranks.py and predict_published.py: links by two messages, sides that hang, and the tables of all."""
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parent.parent.parent
for folder in ("bench", "tools"):
    sys.path.insert(0, str(ROOT / folder))
import compare_ranks  # noqa: E402: it lies in bench
import experiment_tables  # noqa: E402: it lies in tools
import predict_published  # noqa: E402
import predict_ranks  # noqa: E402


class PredictRanksTest(unittest.TestCase):
    def test_a_link_takes_for_both_messages_what_they_took(self):
        rate, latency = predict_ranks.link_of(0.046, 0.178)
        for megabytes, seconds in ((5.5, 0.046), (22, 0.178)):
            self.assertAlmostEqual(2e-6 * latency + megabytes * 1e6 / rate, seconds)

    def test_a_link_without_a_latency_to_see_has_the_rate_of_the_larger(self):
        self.assertEqual(predict_ranks.link_of(0.040, 0.176), (22e6 / 0.176, 0.0))

    def test_the_stages_take_turns_at_being_first(self):
        order = []
        machine = SimpleNamespace(args=SimpleNamespace(rounds=3), copies=lambda ranks: (1.0, 0.0),
                                  predicted=lambda *words: {"update_s": 1.0}, measured=lambda ranks, prefix, zero, extra: order.append(zero) or 2.0)
        rows = predict_ranks.one_case(machine, "threads", 2, [], 1, [])
        self.assertEqual(order, [0, 1, 1, 0, 0, 1])
        self.assertEqual([(row["case"], row["measured_s"]) for row in rows], [("threads, ZeRO 0", 2.0), ("threads, ZeRO 1", 2.0)])


class CompareRanksTest(unittest.TestCase):
    def test_a_side_that_hangs_is_ended_with_what_it_started(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = Path(folder) / "mark"
            with self.assertRaisesRegex(RuntimeError, "not ended after"):
                compare_ranks.last_json(["sh", "-c", f"(sleep 2; touch {mark}) & sleep 5"], 0.5)
            with self.assertRaisesRegex(RuntimeError, "exit code 3"):
                compare_ranks.last_json(["sh", "-c", "sleep 2; exit 3"], 60)
            self.assertFalse(mark.exists())

    def test_sides_that_fail_are_left_out_and_the_rest_is_kept(self):
        results = {"threads": {"images_per_second": 30.0, "exposed_share": 0.1}, "accelerate": {"images_per_second": 20.0}}

        def run(name, ranks, batch):
            if name not in results:
                raise RuntimeError(f"no {name}")
            return results[name]
        sides = SimpleNamespace(run=run)
        kept = []
        args = SimpleNamespace(rounds=2, minutes=1, began=compare_ranks.time.monotonic())
        rows = compare_ranks.measure(sides, ["threads", "torch", "accelerate"], 16, 64, args, kept.append)
        self.assertEqual(rows, {"threads": {"rounds": 2, "images_per_second": 30.0, "exposed_share": 0.1},
                                "accelerate": {"rounds": 2, "images_per_second": 20.0}})
        self.assertEqual(kept[-1], rows)
        made = experiment_tables.compared({"versions": {"torch": "2"}, "comparisons": [{"ranks": 16, "kind": "strong", "rows": rows}]})
        self.assertIn("| 16 ranks, strong | threads | 2 | 30 |  | 1.50 |  | 10.0 % |  |\n", made)
        self.assertIn("With torch 2.\n", made)


class PredictPublishedTest(unittest.TestCase):
    def test_the_jitter_of_one_node_is_found_and_judged_on_the_others(self):
        class Planner:
            """Epochs as a jitter of 1.5 % would make them, seen through the file's."""
            def row(self, network, nodes, devices, device, mesh, settings, one):
                jitter = predict_published.json.loads(Path(network).read_text())["jitter"]
                ranks, images = nodes * devices, predict_published.IMAGES
                epoch = next(e for n, d, e in predict_published.T4_EPOCHS if (n, d) == (nodes, devices))
                updates = predict_published.math.ceil(images / (predict_published.MICRO * ranks))
                return {"update_s": epoch / updates * (1 + jitter) / 1.015, "exposed_s": 0, "slowest_s": 0}
        with tempfile.TemporaryDirectory() as folder:
            self.assertAlmostEqual(predict_published.jitter_of_one_node(Planner(), folder), 0.015)
            rows = predict_published.t4_sensitivity(Planner(), folder)
        self.assertEqual([row["of"] for row in rows], ["all"] * len(predict_published.T4_CHANGES) + ["several nodes"] * 2)
        self.assertAlmostEqual(rows[-1]["error"], 0)
        self.assertIn("| jitter 1.50 %, fitted to the one node | several nodes | 0.0 % |", experiment_tables.sensitivity({"studies": {"sensitivity": {"rows": rows}}}))


if __name__ == "__main__":
    unittest.main()
