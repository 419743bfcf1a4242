"""DeepSpeed files of public projects, by the program: those that can be honoured train two updates of a tiny model on the fewest ranks that their
batch allows, the others are refused by exactly the keys that stand in the way.  cli_contract_deepspeed.py PROGRAM [CLASS]"""
import json
import re
import unittest

import contract
from contract import Contract

GOLDENS = contract.ROOT / "tests/golden"
EXPECTED = json.loads((GOLDENS / "deepspeed_expected.json").read_text())
RUN = {"model": {"image": 8, "patch": 4, "width": 16, "depth": 2, "heads": 4, "mlp": 32},
       "data": {"train": "synthetic:3x8x8x4x8192"}, "train": {"steps": 2, "batch": 48}}
WORLDS = (1, 2, 3, 8)


class Files(Contract):
    def setUp(self):
        super().setUp()
        self.config = self.tmp / "run.json"
        self.config.write_text(json.dumps(RUN))

    def train(self, name, world):
        ranks = world * EXPECTED[name].get("ranks", 1)
        return ["train", "--config", self.config, "--deepspeed", GOLDENS / "deepspeed" / f"{name}.json", "--ranks", ranks,
                "--threads", "1", "--out", self.tmp / name]

    def trains(self, name):
        row = EXPECTED[name]
        world = next(w for w in WORLDS if row["triples"][str(w)])
        self.ok(*self.train(name, world))
        run = json.loads((self.tmp / name / "config.json").read_text())["train"]
        self.assertEqual([run["batch"], run["micro_batch"], run["accumulation"]], row["triples"][str(world)])
        rows = [json.loads(line) for line in (self.tmp / name / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(max(one.get("step", 0) for one in rows), 2)

    def all_train(self, offloaded):
        for name, row in EXPECTED.items():
            if not row["refused"] and (row["settings"].get("mesh.offload", "none") != "none") == offloaded:
                with self.subTest(name):
                    self.trains(name)


class Accepted(Files):
    def test_they_train(self):
        self.all_train(offloaded=False)


class Offloaded(Files):
    def test_they_train(self):
        self.all_train(offloaded=True)


class Refused(Files):
    def test_what_is_refused_names_its_keys(self):
        for name, row in EXPECTED.items():
            if not row["refused"]:
                continue
            with self.subTest(name):
                world = next(w for w in WORLDS if row["triples"][str(w)])
                said = self.refused(64, "would give another result", *self.train(name, world)).stderr
                self.assertEqual(set(re.findall(r"^    ([\w.]+): ", said, re.MULTILINE)), set(row["refused"]))
                self.assertFalse((self.tmp / name).exists(), "a mistake must not make a folder")

    def test_ranks_that_do_not_divide_the_batch(self):
        for name, row in EXPECTED.items():
            for world in (w for w in WORLDS if not row["triples"][str(w)]):
                with self.subTest(name, world=world):
                    self.refused(64, rf"{world} data-parallel rank", *self.train(name, world))


if __name__ == "__main__":
    unittest.main()
