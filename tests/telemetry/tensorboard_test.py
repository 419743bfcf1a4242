"""TensorBoard's own package reads what the program's writer wrote: a run interrupted after step 8 and resumed at
step 5 shows as one run.  tensorboard_test.py TEST_PROGRAM; exit code 77 when no Python at hand has tensorboard
(TENSORBOARD_PYTHON names one)."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

READER = Path(__file__).resolve().parents[2] / "tools" / "read_tensorboard.py"
MISSING = 77


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: expected {wanted}, found {found}")


def main():
    own = READER.parents[1] / ".venv" / "bin" / "python"
    python = os.environ.get("TENSORBOARD_PYTHON", str(own) if own.exists() else sys.executable)
    with tempfile.TemporaryDirectory(prefix="vitrail-events-") as folder:
        subprocess.run([sys.argv[1], "--gtest_filter=EventFile.SampleRun"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "EVENT_FOLDER": folder})
        reader = subprocess.run([python, "-B", READER, folder], stdout=subprocess.PIPE)
        if reader.returncode == MISSING:
            print(f"skipped: {python} has no tensorboard package")
            return MISSING
        expect("reader's exit code", reader.returncode, 0)
        found = json.loads(reader.stdout)

    loss = found["scalars"]["train/loss"]
    expect("steps", [step for step, _ in loss], list(range(1, 11)))
    for step, value in loss:
        wanted = (100 if step <= 5 else 60) / step
        if abs(value - wanted) > 1e-6 * wanted:
            sys.exit(f"loss of step {step}: expected {wanted}, found {value}")
    expect("learning rate", {value for _, value in found["scalars"]["train/lr"]}, {0.125})
    expect("top-1", found["scalars"]["eval/top1"], [[10, 0.75]])
    expect("image", [entry[:3] for entry in found["images"]["image"]], [[10, 4, 6]])
    expect("text", found["texts"]["config/text_summary"], [[10, "a *text*"]])
    print("tensorboard agrees")
    return 0


if __name__ == "__main__":
    sys.exit(main())
