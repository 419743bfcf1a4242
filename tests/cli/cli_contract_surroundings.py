"""What surrounds the program must not take it over: foreign folders, links, pipes, devices, closed descriptors.
cli_contract_surroundings.py PROGRAM TRAP_PLUGIN"""
import json
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import sys
import unittest
import zipfile
import zlib

TRAP = pathlib.Path(sys.argv.pop(2)).resolve()

from contract import CAT, PROGRAM, ROOT, TINY, Contract, vitrail  # noqa: E402 (takes its own argument)

PLUGINS = ["libvitrail_cuda.so", "libvitrail_mpi.so"]


class ForeignFolders(Contract):
    def doctor_in(self, folder, program):
        """`doctor` started by name through PATH; whether the trap was sprung."""
        mark = self.tmp / "mark"
        env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "TRAP_MARK": str(mark)}
        done = subprocess.run([program.name, "doctor"], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        sprung = mark.exists()
        mark.unlink(missing_ok=True)
        return sprung

    def test_no_plugin_of_the_current_folder_is_loaded(self):
        for place in ["", "vitrail", "../lib", "../lib/vitrail"]:
            folder = self.tmp / f"trap-{len(place)}" / "here"
            folder.mkdir(parents=True)
            (folder / place).mkdir(parents=True, exist_ok=True)
            for plugin in PLUGINS:
                shutil.copy(TRAP, folder / place / plugin)
            if not (folder / "vitrail").exists():
                (folder / "vitrail").write_text("the name the program was started by")
            self.assertFalse(self.doctor_in(folder, pathlib.Path(PROGRAM)), place)

    def test_no_library_of_the_current_folder_is_loaded(self):
        """The dynamic linker, too, looks nowhere but in the system's folders and in the installation."""
        listed = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
        names = [line.split("=>")[0].strip() for line in listed.splitlines() if "=>" in line]
        self.assertTrue(any(name.startswith("libjpeg") for name in names), listed)
        for name in names:
            (self.tmp / name).write_text("no library at all")
        self.ok("--version", cwd=self.tmp)
        self.assertFalse(self.doctor_in(self.tmp, pathlib.Path(PROGRAM)))

    def test_search_paths_are_absolute_or_of_the_installation(self):
        folder = pathlib.Path(PROGRAM).parent
        for binary in [PROGRAM, *folder.glob("libvitrail*.so")]:
            shown = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
            for path in re.findall(r"(?:RPATH|RUNPATH).*\[(.*)\]", shown):
                for element in path.split(":"):
                    self.assertTrue(element.startswith(("/", "$ORIGIN")), f"{binary}: {path!r}")

    def test_a_plugin_beside_the_program_is(self):
        """The trap works where it belongs to the installation."""
        for plugin in PLUGINS:
            own = self.tmp / f"own-{plugin}"
            own.mkdir()
            shutil.copy(PROGRAM, own / "vitrail")
            shutil.copy(TRAP, own / plugin)
            self.assertTrue(self.doctor_in(self.tmp, own / "vitrail"), plugin)

    def test_no_bundled_files_of_the_current_folder(self):
        shutil.copytree(TINY, self.tmp / "models/pretender")
        (self.tmp / "configs/devices").mkdir(parents=True)
        shutil.copy(ROOT / "configs/devices/h200.json", self.tmp / "configs/devices/pretender.json")
        self.refused(65, "no model 'pretender'", "predict", "-m", "pretender", CAT, cwd=self.tmp)
        self.refused(65, "no device \"pretender\"", "plan", "--model", "vit_tiny_patch16_224", "--target", "pretender", cwd=self.tmp)

    def test_the_default_model_is_the_bundled_one(self):
        shutil.copytree(TINY, self.tmp / "deit_tiny_patch16_224")
        bundled = self.ok("predict", CAT, "--json", cwd=self.tmp.parent)
        self.assertIn("Egyptian cat", bundled.stdout)
        self.assertEqual(self.ok("predict", CAT, "--json", cwd=self.tmp).stdout, bundled.stdout)


class Outputs(Contract):
    def test_a_link_stays_and_its_target_gets_the_content(self):
        (self.tmp / "real.safetensors").write_text("old")
        link = self.tmp / "link.safetensors"
        link.symlink_to("real.safetensors")
        self.ok("convert", TINY, link, "--to", "timm", "--force")
        self.assertTrue(link.is_symlink())
        self.ok("inspect", self.tmp / "real.safetensors")

    def test_a_folder_in_place_of_a_file_is_noticed_before_the_work(self):
        data, out = f"folder:{self.images()}", self.tmp / "out"
        out.mkdir()
        small = ["-m", "vit_tiny_patch16_224", "--weights", "rule", "--classes", "4"]
        for command in [["eval", "-m", TINY, "--data", data, "--report", out], ["data", "show", data, "-o", out],
                        ["data", "pack", data, "-o", out], ["profile", *small, "--trace", out],
                        ["bench", "calibrate", "-o", out]]:
            done = self.refused(73, "is a folder(.|\n)*try: name a file in it", *command)
            self.assertNotIn("img/s", done.stderr)
        self.assertEqual(list(out.iterdir()), [])

    def test_every_refusal_of_a_place_says_what_to_try(self):
        file = self.tmp / "file"
        file.write_text("x")
        for command in [["train", "--set", "data.train=synthetic:3x8x8x4x16", "--out", file], ["convert", TINY, file, "--force"],
                        ["convert", TINY, file / "below"], ["convert", TINY, "/proc/x"],
                        ["explain", "-m", TINY, CAT, "--out", file],
                        ["data", "show", f"folder:{self.images()}", "-o", self.tmp / "a.png", "--files", file]]:
            self.refused(73, "\n  try: ", *command)
        self.assertEqual(file.read_text(), "x")

    def test_a_device_stays_a_device(self):
        node = self.tmp / "null"
        try:
            os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            self.skipTest("only root may make a device")
        self.ok("data", "show", f"folder:{self.images()}", "-o", node)
        self.assertTrue(node.is_char_device())

    def test_a_pipe_gets_the_bytes(self):
        pipe = self.tmp / "pipe"
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        self.addCleanup(reader.kill)
        for _ in range(100):  # until cat has opened it
            done = vitrail("data", "show", f"folder:{self.images()}", "-o", pipe)
            if "nobody reads" not in done.stderr:
                break
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(reader.communicate(timeout=10)[0].startswith(b"\x89PNG"))
        self.refused(73, "nobody reads from it", "data", "show", f"folder:{self.images()}", "-o", pipe)

    def images(self):
        folder = self.tmp / "images"
        for name in ["cat", "dog"]:
            (folder / name).mkdir(parents=True, exist_ok=True)
            shutil.copy(CAT, folder / name / "1.png")
        return folder

    def test_images_named_by_dots_stay_in_their_folder(self):
        for name in ["..png", "...png", "....png"]:
            shutil.copy(CAT, self.tmp / name)
        out = self.tmp / "a/b"
        names = [self.tmp / name for name in ["..png", "...png", "....png"]]
        self.ok("explain", "-m", TINY, *names, "--out", out, "--method", "mean")
        self.assertEqual(sorted(p.name for p in (self.tmp / "a").iterdir()), ["b"])
        self.assertEqual(sorted(p.name for p in out.iterdir()), ["image", "image-2", "image-3"])

    def test_with_a_standard_descriptor_closed(self):
        folder = self.images()
        (folder / "cat/broken.png").write_text("no image")
        for closed in [[2], [1], [0, 1, 2]]:
            packed = self.tmp / "packed"
            self.with_closed(closed, "data", "pack", f"folder:{folder}", "-o", packed, "--skip-bad")
            self.assertEqual(self.json("data", "check", f"packed:{packed}")["checked"], 2)

    def test_reports_and_runs_with_a_standard_descriptor_closed(self):
        """What is said goes nowhere, and into none of the files that are open in its place."""
        train = ["train", "--set", "data.train=synthetic:3x8x8x4x16", "--set", "data.val=synthetic:3x8x8x4x8",
                 "--set", "model.image=8", "--set", "model.patch=4", "--set", "model.width=16", "--set", "model.heads=2",
                 "--set", "model.mlp=16", "--set", "model.depth=1", "--set", "train.batch=4", "--set", "train.steps=2"]
        for closed in [[1], [1, 2], [0, 1, 2]]:
            out, page = self.tmp / f"run-{len(closed)}", self.tmp / "page.html"
            self.with_closed(closed, *train, "--out", out)
            lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
            self.assertEqual(max(line["step"] for line in lines), 2)
            self.ok("verify", "--manifest", out / "best")
            self.with_closed(closed, "eval", "-m", out, "--report", page)
            self.assertRegex(page.read_text(), r"(?s)\A<!DOCTYPE html>.*</html>\s*\Z")

    def with_closed(self, closed, *command):
        done = subprocess.run([PROGRAM, *map(str, command)], timeout=60,
                              preexec_fn=lambda: [os.close(fd) for fd in closed])
        self.assertEqual(done.returncode, 0, command)


    def test_a_limit_on_the_size_of_files_is_an_error_like_any_other(self):
        """ulimit -f sends SIGXFSZ, as batch systems do: nothing dies of it, and nothing half-written stays."""
        def limited(*command):
            line = "ulimit -f 8; " + shlex.join([PROGRAM, *map(str, command)])
            return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
        done = limited("convert", TINY, self.tmp / "copy.npz")
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(list(self.tmp.iterdir()), [])


class Inputs(Contract):
    def test_a_pipe_nobody_writes_to_is_refused_at_once(self):
        pipe = self.tmp / "pipe.png"
        os.mkfifo(pipe)
        self.refused(65, "is a pipe", "predict", "-m", TINY, pipe)
        self.refused(64, "is a pipe", "plan", "--config", pipe)
        self.refused(65, "is a pipe", "predict", "-m", TINY, f"@{pipe}")
        self.refused(65, "is a device", "predict", "-m", TINY, "/dev/zero")

    def test_pipes_of_the_shell_are_read(self):
        line = f'"{PROGRAM}" predict -m "{TINY}" --json @<(sleep 0.1; echo "{CAT}") - <<< "{CAT}"'
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 2), done.stderr)


class Terminal(Contract):
    """Names and texts from files are shown, never obeyed."""
    EVIL = "a\033]0;x\a\u009b2J\u202egnp\u2066\x7f"
    ORDERS = ["\033", "\a", "\u009b", "\u202e", "\u2066", "\x7f"]

    def shown(self, *arguments):
        done = vitrail(*arguments)
        for order in self.ORDERS:
            self.assertNotIn(order, done.stdout + done.stderr, arguments)
        return done

    def test_names_of_images(self):
        whole, broken = self.tmp / f"{self.EVIL}.png", self.tmp / f"{self.EVIL}-broken.png"
        shutil.copy(CAT, whole)
        broken.write_text("no image")
        self.assertEqual(self.shown("predict", "-m", TINY, whole).returncode, 0)
        self.assertEqual(self.shown("predict", "-m", TINY, broken).returncode, 65)
        self.assertEqual(self.shown("predict", "-m", TINY, broken, whole).returncode, 65)
        self.shown("explain", "-m", TINY, whole, broken, "--out", self.tmp / "out", "--method", "mean")
        self.shown("explain", "-m", TINY, whole, "--out", self.tmp / self.EVIL, "--method", "mean")
        done = self.shown("predict", "-m", TINY, whole, "--json")
        self.assertEqual(json.loads(done.stdout)["image"], str(whole), "lossless")

    def test_names_that_are_not_utf8_can_be_told_apart(self):
        names = [os.fsencode(self.tmp) + b"/" + name for name in [b"a\xfe.png", b"a\xff.png", b"b\xff.png", "\u00e4.png".encode()]]
        for name in names:
            shutil.copy(CAT, name)
        pathlib.Path(os.fsdecode(names[2])).write_text("no image")
        for more in [], ["--logits"], ["--embed"]:
            done = vitrail("predict", "-m", TINY, "--json", *more, *map(os.fsdecode, names))
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([bytes.fromhex(line["image_hex"]) if "image_hex" in line else line["image"].encode()
                              for line in lines], names)
        done = vitrail("explain", "-m", TINY, "--json", "--method", "mean", "--out", self.tmp / "out", os.fsdecode(names[1]))
        self.assertEqual(bytes.fromhex(json.loads(done.stdout)["image_hex"]), names[1])

    def test_configs_of_models(self):
        for key, value in [("model_type", self.EVIL), ("hidden_act", self.EVIL), (self.EVIL, 1), ("vitrail", {self.EVIL: 1}),
                           ("id2label", {"0": self.EVIL}), ("architectures", [self.EVIL])]:
            folder = self.tmp / "model"
            shutil.copytree(TINY, folder, dirs_exist_ok=True)
            config = {**json.loads((TINY / "config.json").read_text()), key: value}
            (folder / "config.json").write_text(json.dumps(config))
            for command in ["inspect"], ["predict", CAT]:
                self.shown(command[0], *(["-m"] if command[1:] else []), folder, *command[1:])

    def test_classes_and_tensors(self):
        for name in [self.EVIL, "plain"]:
            (self.tmp / "data" / name).mkdir(parents=True)
            shutil.copy(CAT, self.tmp / "data" / name / "1.png")
        (self.tmp / "data" / self.EVIL / f"{self.EVIL}.png").write_text("no image")
        for command in "stats", "check", "pack":
            more = ["-o", self.tmp / "packed"] if command == "pack" else []
            self.shown("data", command, f"folder:{self.tmp / 'data'}", *more)
        done = self.shown("data", "check", f"folder:{self.tmp / 'data'}", "--json")
        samples = [json.loads(line).get("sample") for line in done.stdout.splitlines()]
        self.assertIn(f"{self.EVIL}/{self.EVIL}.png", samples)


SETTINGS = [word for setting in ["model.image=8", "model.patch=4", "model.width=16", "model.depth=1", "model.heads=2", "model.mlp=32",
                                 "train.batch=8", "train.steps=1", "train.tensorboard=false", "data.class_names=a", "data.class_names=b"]
            for word in ("--set", setting)]


def large_png(side):
    """A black image of side x side pixels, small as a file."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    pixels = zlib.compress(bytes((3 * side + 1) * side), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


class Memory(Contract):
    def test_statistics_of_a_large_tensor_are_taken_in_parts(self):
        elems = 64 << 20
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({elems},), }}"
        header += " " * (63 - (10 + len(header)) % 64) + "\n"
        path = self.tmp / "zeros.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            with archive.open("zeros.npy", "w") as entry:
                entry.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
                for _ in range(elems * 4 >> 20):
                    entry.write(bytes(1 << 20))
        with open(self.tmp / "out", "w") as out:
            child = subprocess.Popen([PROGRAM, "inspect", path, "--stats", "--json"], stdout=out)
            _, child.returncode, used = os.wait4(child.pid, 0)
        self.assertEqual(child.returncode, 0)
        stats = json.loads((self.tmp / "out").read_text())["tensors"][0]
        self.assertEqual((stats["bytes"], stats["min"], stats["max"]), (elems * 4, 0, 0))
        self.assertLess(used.ru_maxrss, 200 << 10, "KiB resident; the tensor has 256 MiB")

    def test_the_limit_that_binds_is_named(self):
        if subprocess.run(["bash", "-c", f'ulimit -v 1500000; "{PROGRAM}" --version'], capture_output=True).returncode:
            self.skipTest("a sanitizer reserves more address space than is left here")
        line = f'ulimit -v 1500000; "{PROGRAM}" bench infer --model vit_huge_patch14_224 --weights rule --batch 64'
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 71, done.stderr)
        self.assertRegex(done.stderr, "needs .*address space that ulimit -v allows")


class LargeImages(Contract):
    def limited(self, kilobytes, *arguments):
        line = f"ulimit -v {kilobytes}; " + shlex.join([PROGRAM, *map(str, arguments)])
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120)

    def test_images_being_decoded_count_and_the_advice_helps(self):
        """Large images on many threads: refused before anything is begun, and what is advised then works."""
        if self.limited(600000, "--version").returncode:
            self.skipTest("a sanitizer reserves more address space than is left here")
        image = large_png(5000)
        for i in range(8):
            folder = self.tmp / "large" / ("ab"[i % 2])
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{i}.png").write_bytes(image)
        run = self.tmp / "run"
        self.ok("train", "--set", "data.train=synthetic:3x8x8x2x16", *SETTINGS, "--out", run)
        large = self.tmp / "large"
        for command, option in ([["predict", large], "--threads "], [["bench", "stream", large, "--rounds", "1"], "--threads "],
                                [["eval", "-m", run, "--data", f"folder:{large}"], "--set loader.workers="]):
            with self.subTest(command=command[0]):
                done = self.limited(600000, *command, "--threads", "8")
                self.assertEqual(done.returncode, 71, done.stderr)
                self.assertRegex(done.stderr, "needs .*images being decoded .*address space that ulimit -v allows")
                advised = re.search(f"try: {option}([0-9]+)", done.stderr)
                self.assertTrue(advised, done.stderr)
                follow = ["--threads", advised[1]] if option == "--threads " else ["--threads", "8", "--set", "loader.workers=" + advised[1]]
                again = self.limited(600000, *command, *follow)
                self.assertEqual(again.returncode, 0, again.stderr)


if __name__ == "__main__":
    unittest.main()
