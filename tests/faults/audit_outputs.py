"""The audit's other rows of B, and those of C about files: outputs that replaced what they should not, texts that a
terminal obeys, inputs that never end."""
import os
import shutil
import stat
import subprocess

from audit_place import CAT, MODELS, ROOT, expect, read_safetensors, said, write_safetensors

TINY = MODELS / "hf_single"


def b1(place):
    """Outputs that are links or devices."""
    seen, data = [], f"folder:{place.noise()}"
    link, node = place.tmp / "link.png", place.tmp / "null"
    (place.tmp / "real.png").write_text("old")
    link.symlink_to("real.png")
    place.ok("data", "show", data, "-o", link)
    if not link.is_symlink() or (place.tmp / "real.png").read_bytes() == b"old":
        seen.append("a link was replaced by a file, what it led to is old")
    try:
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        place.ok("data", "show", data, "-o", node)
        if not node.is_char_device():
            seen.append("a device became a plain file")
    except PermissionError:
        pass  # only root may make one
    expect(not seen, "; ".join(seen))


def b6(place):
    """convert --force over a model, killed at each of its file operations: the old model or the new one."""
    old = place.model("hf_single", to="old")
    new = place.model("hf_single", lambda c: c.update(id2label={str(i): f"new {i}" for i in range(5)}), to="new")
    tensors, metadata = read_safetensors(new / "model.safetensors")
    dtype, shape, data = tensors["classifier.bias"]
    tensors["classifier.bias"] = dtype, shape, data[4:] + data[:4]
    write_safetensors(new / "model.safetensors", tensors, metadata)
    place.ok("convert", new, place.tmp / "converted")
    whole = [place.ok("predict", "-m", folder, CAT, "--json").stdout for folder in (old, place.tmp / "converted")]
    answered = {}  # by what a folder holds
    for at in range(1, 200):
        target = place.tmp / "target"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(old, target)
        done = place.run("convert", new, target, "--force", env=place.faulted(
            place.tmp, FAULT_CLASS="any", FAULT_AT=str(at), FAULT_ACTION="kill"))
        held = tuple((file, file.read_bytes()) for file in sorted(target.rglob("*")) if file.is_file())
        if held not in answered:
            answered[held] = place.run("predict", "-m", target, CAT, "--json")
        found = answered[held]
        expect(found.stdout in whole,
               f"killed at operation {at}: predict ends with {found.returncode} and answers as neither model does")
        if done.returncode == 0:
            return


def b8(place):
    """A limit on the address space is known before memory is asked for."""
    line = 'ulimit -v 1500000; exec "$0" bench infer --model vit_huge_patch14_224 --weights rule --batch 64 --seconds 0'
    done = subprocess.run(["bash", "-c", line, place.program], env=place.env, capture_output=True, text=True, timeout=60)
    expect(done.returncode == 71 and "needs" in done.stderr and "ulimit" in done.stderr, f"under ulimit -v: {said(done)}")


def c1(place):
    """Names of images and texts of configs that would command a terminal."""
    evil, orders = "a\033]0;x\a\u009b2J\u202e", ["\033", "\a", "\u009b", "\u202e"]
    broken = place.tmp / f"{evil}.png"
    broken.write_text("no image")
    model = place.model("hf_single", lambda c: c.update(model_type=evil))
    seen = []
    for what, command in [("the name of an image", ["predict", "-m", TINY, broken]), ("model_type", ["inspect", model])]:
        done = place.run(*command)
        found = [f"U+{ord(order):04X}" for order in orders if order in done.stdout + done.stderr]
        seen += [f"{what}: {' '.join(found)} reach the terminal"] * bool(found)
    expect(not seen, "; ".join(seen))


def c2(place):
    """An image whose stem is two dots."""
    shutil.copy(CAT, place.tmp / "...png")
    shutil.copy(CAT, place.tmp / "cat.png")
    place.ok("explain", "-m", TINY, place.tmp / "...png", place.tmp / "cat.png", "--out", place.tmp / "a/b", "--method", "mean")
    beside = sorted(path.name for path in (place.tmp / "a").iterdir() if path.name != "b")
    expect(not beside, f"explain --out a/b wrote {', '.join(beside)} into a/")


def c3(place):
    """run.lock as a link to a file of somebody's."""
    (place.tmp / "precious").write_text("precious")
    (place.tmp / "run").mkdir()
    (place.tmp / "run/run.lock").symlink_to(place.tmp / "precious")
    done = place.run(*place.training("run"))
    expect((place.tmp / "precious").read_text() == "precious", f"the file that run.lock leads to was overwritten, {said(done)}")


def c11(place):
    """Models of the current folder under the names of bundled ones."""
    shutil.copytree(TINY, place.tmp / "models/pretender")
    done = place.run("predict", "-m", "pretender", CAT, cwd=place.tmp)
    expect(done.returncode == 65, "predict -m pretender took ./models/pretender")


def c15(place):
    """Pipes that nobody writes to."""
    pipe, seen = place.tmp / "pipe.png", []
    os.mkfifo(pipe)
    for command in (["predict", "-m", TINY, pipe], ["plan", "--config", pipe]):
        done = place.run(*command, limit=5)
        seen += [f"{command[0]} waited"] * (done.returncode is None)
    expect(not seen, " and ".join(seen) + " for 5 s and more")


def c17(place):
    """Tensors without bytes and with sizes whose products overflow."""
    huge = (1 << 63) - 1
    tensors = {"patch_embed.proj.weight": [0, 3, 8, 8], "pos_embed": [0, huge, 0], "blocks.0.mlp.fc1.weight": [4, 0]}
    write_safetensors(place.tmp / "huge.safetensors", {name: ("F32", shape, b"") for name, shape in tensors.items()})
    done = place.run("predict", "-m", place.tmp / "huge.safetensors", CAT)
    expect(done.returncode == 65 and str(huge) in done.stderr, f"{huge} positions: {said(done)}")


def s2(place):
    """Small things of other libraries' models and images."""
    seen = []
    named = place.model("timm_hub", lambda c: c.update(label_names={"0": "zero", "1": "one", "2": "two", "3": "three", "4": "four"}))
    done = place.ok("predict", "-m", named, CAT)
    seen += ["label_names as a dict dropped"] * ("one" not in done.stdout)
    done = place.ok("predict", "-m", TINY, ROOT / "tests/golden/images/exif6.jpg")
    seen += ["an EXIF orientation ignored without a word"] * ("EXIF" not in done.stderr)
    (place.tmp / "photos").mkdir()
    (place.tmp / "photos/cats").symlink_to(place.noise())
    done = place.run("predict", "-m", TINY, place.tmp / "photos", "--json")
    seen += [f"a link to a folder not followed ({said(done)})"] * (len(done.stdout.splitlines()) != 24)
    done = place.run("predict", "-m", place.model("hf_single", lambda c: c.update(num_attention_heads=5)), CAT)
    seen += [f"5 heads of a width of 32 in config.json: exit {done.returncode}, not 65"] * (done.returncode != 65)
    done = place.run("predict", "-m", TINY, CAT, "--logits")
    seen += ["no --logits"] * (done.returncode != 0)
    expect(not seen, "; ".join(seen))
