"""Each command of the real program: its JSON, its text, its exit codes.  cli_contract_commands.py PROGRAM"""
import json
import pathlib
import shutil
import signal
import subprocess
import unittest

from contract import CAT, PROGRAM, ROOT, SMALL, TINY, Contract, vitrail


class Models(Contract):
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

    def test_predict_goes_on_past_bad_images(self):
        bad = self.tmp / "bad.jpg"
        bad.write_text("no image")
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
        self.assertIn("EXIF orientation 6 not applied", self.ok("predict", "-m", TINY, turned, "-v").stderr)
        self.assertIn("--exif applies it", self.ok("predict", "-m", TINY, turned).stderr)
        self.assertEqual(self.ok("predict", "-m", TINY, turned, "--exif").stderr, "")

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
            self.assertEqual((answer["max_difference"], answer["changed"]), (0, []), to)
            self.assertTrue(self.json("verify", TINY, target, "--image-file", CAT)["same"])
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


class Machines(Contract):
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

    def test_bench_dist(self):
        answer = self.json("bench", "dist", "--ranks", "3", "--mb", "0.1", "--seconds", "0", "--dtype", "bf16")
        self.assertEqual((answer["dtype"], answer["threads"]["ranks"], "mpi" in answer), ("bf16", 3, False))
        for key in ("ms_median", "gb_per_s", "bus_gb_per_s", "copies"):
            self.assertGreater(answer["threads"][key], 0)
        text = self.ok("bench", "dist", "--mb", "0.1", "--seconds", "0").stdout
        self.assertRegex(text, r"a plain copy(.|\n)*threads +2 ")

    def test_bench_train(self):
        answer = self.json("bench", "train", *SMALL, "--batch", "2", "--classes", "10", "--steps", "2")
        for key in ("img_per_s", "ms_median", "gflops", "peak_fraction", "memory_peak", "loss"):
            self.assertGreater(answer[key], 0, key)
        self.assertIn("GFLOP/s", self.ok("bench", "train", *SMALL, "--steps", "1", "--batch", "1").stdout)


class Profiles(Contract):
    def test_tune_and_calibrate(self):
        home = {"XDG_CONFIG_HOME": str(self.tmp)}
        done = vitrail("bench", "--tune", "--gemm", "5x576x192", "--rounds", "1", "--threads", "1", env=home)
        self.assertEqual(done.returncode, 0, done.stderr)
        table = next(self.tmp.glob("vitrail/kernels-*.json"))
        self.assertIn("kernels by " + str(table), vitrail("profile", *SMALL, "-v", env=home).stderr)
        table.write_text("{")
        answer = vitrail("profile", *SMALL, "-v", env=home)
        self.assertEqual(answer.returncode, 0)
        self.assertIn("is not used", answer.stderr)
        self.assertNotIn("is not used", vitrail("profile", *SMALL, "-v", "--kernels", "none", env=home).stderr)
        device = self.tmp / "desk.json"
        self.ok("bench", "--calibrate", "--out", device, "--gemm", "20x64x32", "--threads", "1")
        self.assertGreater(self.json("plan", *SMALL[:6], "--target", device)["run_s"], 0)

    def test_profile(self):
        answer = self.json("profile", *SMALL, "--no-fuse")
        parts = {row["name"] for row in answer["parts"]}
        self.assertLessEqual({"embeddings", "layer norm 1", "attention", "MLP", "residual 2"}, parts)
        self.assertGreater(sum(row["flops"] for row in answer["operations"]), 0)
        self.assertIn("of bound", self.ok("profile", *SMALL).stdout)
        fine = {row["name"] for row in answer["fine"]}
        self.assertLessEqual({"qkv", "scores + softmax + context", "projection", "fc1", "GELU", "fc2"}, fine)

    def test_doctor(self):
        answer = self.json("doctor")
        self.assertGreater(answer["cpu"]["peak_gflops"], 0)
        self.assertFalse(answer["backends"]["cuda"])
        self.assertIn("libpng", [row["name"] for row in answer["libraries"]])
        plain = self.ok("doctor", env={"VITRAIL_MODELS": str(TINY.parent)})
        self.assertIn("hf_single", plain.stdout)
        self.assertNotIn("\033", plain.stdout)

    def test_quiet_says_nothing(self):
        self.assertEqual(self.ok("profile", *SMALL, "--quiet").stderr, "")
        self.assertNotEqual(self.ok("profile", *SMALL).stderr, "")


class TrainingProfiles(Contract):
    def test_profile_of_training_and_sweeps(self):
        page = self.tmp / "profile.html"
        answer = self.json("profile", "--train", *SMALL, "--batch", "2", "--classes", "3", "--sweep", "threads=1,2",
                           "--html", page)
        self.assertEqual({row["phase"] for row in answer["parts"]}, {"forward", "backward", "update"})
        self.assertEqual([row["threads"] for row in answer["sweep"]], ["1", "2"])
        self.assertIn("Roofline", page.read_text())
        for wrong in ["threads", "threads=0", "colour=1", "parallel=columns"]:
            self.assertEqual(vitrail("profile", *SMALL, "--sweep", wrong).returncode, 64, wrong)


class RankProfiles(Contract):
    def test_profile_of_ranks(self):
        for mesh in ["dp=2", "tp=3"]:
            ranks = self.json("profile", *SMALL, "--mesh", mesh, "--batch", "2")["ranks"]
            self.assertEqual(len(ranks), int(mesh[-1]))
        self.assertIn("communication", {row["name"] for row in ranks[0]})
        ranks = self.json("profile", "--train", *SMALL, "--batch", "2", "--classes", "3", "--ranks", "2")["ranks"]
        self.assertIn("communication", {row["name"] for row in ranks[1]})


if __name__ == "__main__":
    unittest.main()
