"""tools/same_speed.py: its cases are what their names say, and hold every row of the GPU's tables."""
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import same_speed  # noqa: E402

MODELS = {"Ti": "tiny", "S": "small", "B": "base", "L": "large", "H": "huge"}
NAME = re.compile(r"(\w+)/(\d+)(?: at (\d+))? ?(bf16|fp8|f32)?( stream)?( training)? batch (\d+)$")
ROW = re.compile(r"(\w+/\d+)( training| inference)?(?: at ([\d,]+) pixels)?[^|]*, batch ([\d,]+)\*?(?:, (bf16|fp8)\*?)?$")


def rows_of_the_gpu():
    """Names of the cases that the tables of the H200 in docs/benchmarks.md need."""
    section = (ROOT / "docs/benchmarks.md").read_text().split("## One NVIDIA H200")[1].split("\n## ")[0]
    names, trains = set(), False
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if "Vitrail, ms" in cells:
            trains = cells[0].startswith("training")
        row = ROW.match(cells[0])
        if not line.startswith("|") or not row:
            continue
        model, kind, image, batch, dtype = row.groups()
        plain = lambda number: number.replace(",", "")
        training = kind == " training" or (trains and not kind)
        at = f" at {plain(image)}" if image else ""
        stream = " stream" if training and cells[1] == "bf16" else ""
        end = f"{' training' if training else ''} batch {plain(batch)}"
        names.add(f"{model}{at} {dtype or 'bf16'}{stream}{end}")
        if "(fp8" in line:
            names.add(f"{model}{at} fp8{end}")
    return names


class SameSpeed(unittest.TestCase):
    def test_a_case_is_what_its_name_says(self):
        for device, cases in same_speed.BENCHES.items():
            for name, words in cases.items():
                said = NAME.match(name)
                if not said:
                    self.assertEqual(name, "training step of the demonstration")
                    continue
                model, patch, image, dtype, stream, training, batch = said.groups()
                with self.subTest(name):
                    self.assertIn(f"vit_{MODELS[model]}_patch{patch}_224", words)
                    self.assertEqual(words[1], "train" if training else "infer")
                    self.assertEqual(words[words.index("--batch") + 1], int(batch))
                    self.assertEqual("--dtype" in words and words[words.index("--dtype") + 1],
                                     dtype if dtype in ("bf16", "fp8") else False)
                    self.assertEqual("--image" in words and words[words.index("--image") + 1], bool(image) and int(image))
                    # fp8 is measured with the stream it is used with.
                    self.assertEqual("train.low_residual=true" in words,
                                     bool(training) and (bool(stream) or dtype == "fp8"))
            self.assertEqual(len({tuple(map(str, words)) for words in cases.values()}), len(cases), device)

    def test_every_row_of_the_gpus_tables_is_a_case(self):
        rows = rows_of_the_gpu()
        self.assertGreater(len(rows), 20)
        prose = {"B/16 bf16 batch 2", "B/16 bf16 batch 4", "Ti/16 bf16 batch 1", "S/16 bf16 batch 4",
                 "L/16 bf16 batch 1", "L/16 fp8 batch 256", "H/14 bf16 stream training batch 32"}
        self.assertEqual(rows | prose, (rows | prose) & set(same_speed.BENCHES["cuda"]))

    def test_old_and_new_are_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = []
            for name, ms in (("old", 2), ("new", 3)):
                program = Path(folder, name)
                program.write_text(f"#!/bin/sh\necho '{{\"ms_median\": {ms}}}'\n")
                program.chmod(program.stat().st_mode | stat.S_IXUSR)
                programs.append(program)
            done = subprocess.run([sys.executable, ROOT / "tools/same_speed.py", *programs, "--rounds", "1", "--device",
                                   "cuda", "--only", "H/14*"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("| H/14 bf16 stream training batch 32 | 2.000 | 3.000 | 1.500 | 1.000 |", done.stdout)


if __name__ == "__main__":
    unittest.main()
