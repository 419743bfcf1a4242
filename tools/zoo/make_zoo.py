#!/usr/bin/env python3
"""Saves a zoo of odd models, each by its library's own code, with what that library answers for one image.

make_zoo.py OUT [--only WORD]   (in a Python that has tools/zoo/requirements.txt; `make zoo` sees to that)

Weights are random and small; a case is a folder OUT/NAME with the model and case.json, which run_zoo.py reads.
"""
import argparse
import dataclasses
import json
import logging
import os
import shutil
import sys
import warnings
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import timm  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
import transformers  # noqa: E402

import hf_fourth  # noqa: E402
import hf_kinds  # noqa: E402
import hf_second  # noqa: E402
import hf_third  # noqa: E402
import timm_fourth  # noqa: E402
import timm_kinds  # noqa: E402
import timm_second  # noqa: E402
import timm_third  # noqa: E402
import torchvision_kinds  # noqa: E402
from common import Answer  # noqa: E402


def write(case, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    made = case.make(folder)
    kind = "answer" if isinstance(made, Answer) else "refusal"
    (folder / "case.json").write_text(json.dumps({"name": case.name, "kind": kind, **dataclasses.asdict(made)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="cases whose name contains this word")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    cases = [c for kinds in (timm_kinds, timm_second, timm_third, timm_fourth, hf_kinds, hf_second, hf_third, hf_fourth,
                             torchvision_kinds)
             for c in kinds.cases() if options.only in c.name]
    names = [c.name for c in cases]
    assert len(set(names)) == len(names), [n for n in names if names.count(n) > 1]
    failed = []
    for case in cases:
        try:
            write(case, options.out / case.name)
        except Exception as error:  # a kind that this version of the library does not have
            shutil.rmtree(options.out / case.name, ignore_errors=True)
            failed.append(case.name)
            print(f"{case.name}: not made: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
    versions = {m.__name__: m.__version__ for m in (torch, timm, transformers, torchvision)}
    (options.out / "versions.json").write_text(json.dumps(versions))
    print(f"{len(cases) - len(failed)} models in {options.out}, {len(failed)} not made ({versions})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
