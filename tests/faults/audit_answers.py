"""The audit's rows D: answers that were wrong, evaluations that flattered, draws that were not the named library's."""
import array
import json
import re

from audit_place import CAT, expect, read_safetensors, said


def d1(place):
    """A table of kernels that names OpenBLAS; Debian's serial build gives wrong products to several threads at once."""
    table, chosen = place.tmp / "table.json", ["--batch", "8", "--threads", "4"]
    gemms = [word for size in ("576x192", "192x192", "768x192", "192x768") for word in ("--product", f"1576x{size}")]
    place.ok("bench", "tune", *gemms, "--threads", "4", "--rounds", "1", "--out", table, env={"LD_LIBRARY_PATH": ""})
    content = json.loads(table.read_text())
    for row in content["rows"]:
        row["kernels"] = ["openblas tiles"]
    command = ["predict", *[CAT] * 8, *chosen, "--json"]
    right = place.ok(*command, "--kernels", "none").stdout
    table.write_text(json.dumps({**content, "libraries": {}}))
    done = place.run(*command, "--kernels", table)
    version = re.search(r"here (\{.*?\})", done.stderr)
    if version:  # a refusal that says which libraries the table must be made with
        table.write_text(json.dumps({**content, "libraries": json.loads(version[1])}))
        done = place.run(*command, "--kernels", table)
    if done.returncode or "openblas" in done.stderr:
        return  # no such kernel, and it is said
    results = [right] + [place.ok(*command, "--kernels", table).stdout for _ in range(40)]
    wrong = [prob_distance(right, other) for other in results]
    expect(max(wrong) < 1e-4, f"{sum(w > 1e-4 for w in wrong)} of 40 runs differ, by up to {max(wrong):.3f}")


def prob_distance(one, other):
    """The largest difference between probabilities in two outputs of predict."""
    first, second = ([{row["class"]: row["prob"] for row in json.loads(line)["top"]} for line in text.splitlines()]
                     for text in (one, other))
    return max(abs(a[c] - b.get(c, 0)) for a, b in zip(first, second) for c in a)


def d2(place):
    """Noise with random labels: an evaluation on the data of the run must not show what was learnt by heart."""
    data = f"folder:{place.noise('pets', count=300, classes='abcd')}"
    place.ok(*place.training("run", data={"train": data}, model={"width": 32, "depth": 2, "mlp": 64},
                             augment={"hflip": 0, "crop": "none"}, train={"steps": 400, "batch": 32, "eval_every": 400}, optim={"lr": 0.003}))
    own = place.answer("eval", "-m", place.tmp / "run")
    named = place.answer("eval", "-m", place.tmp / "run", "--data", data)
    expect(named["count"] == own["count"], f"eval --data of the run's own images: top-1 {named['top1']:.2f} of {named['count']}, "
           f"its validation {own['top1']:.2f} of {own['count']}")


def fresh(place, **model):
    """Weights before the first update, name -> floats."""
    place.ok(*place.training("run", model=model, train={"steps": 1, "eval_every": 1}, optim={"lr": 1e-30, "weight_decay": 0}))
    tensors, _ = read_safetensors(place.tmp / "run/best/model.safetensors")
    return {name: array.array("f", data) for name, (_, _, data) in tensors.items()}


def deviation(values):
    return (sum(v * v for v in values) / len(values)) ** 0.5


def d6_weights(place):
    """Fresh weights as timm draws them."""
    seen, weights = [], fresh(place, width=96, heads=4, distilled=True)
    token = deviation(next(v for k, v in weights.items() if "dist" in k and len(v) == 96))
    seen += [f"the distillation token's {token:.2g}, not 0.02"] * (not 0.01 < token < 0.03)
    (place.tmp / "run").rename(place.tmp / "first")
    weights = fresh(place, width=96, heads=4, pool="map", class_token=False)
    latent = deviation(next(v for k, v in weights.items() if "latent" in k))
    seen += [f"the latent's {latent:.2g}, not 96^-0.5"] * (not 0.06 < latent < 0.13)
    bias = deviation(next(v for k, v in weights.items() if k.endswith("patch_embed.proj.bias")))
    seen += [f"the patch bias' {bias:.2g}, not that of a uniform draw"] * (bias < 0.01)
    expect(not seen, f"deviations: {'; '.join(seen)}")


def d6_depth(place):
    """The one block of a model drops no path, whatever the rate."""
    losses = []
    for number, rate in enumerate((0, 0.9)):
        place.ok(*place.training(str(number), train={"drop_path": rate}))
        losses.append([line["loss"] for line in place.log(str(number)) if line["kind"] == "train"])
    expect(losses[0] == losses[1], f"losses {losses[0][-1]:.4f} and {losses[1][-1]:.4f} at rates 0 and 0.9")


def d6_split(place):
    """A class without validation images is named."""
    folder = place.noise(count=40)
    (folder / "rare").mkdir()
    (folder / "a/0.png").rename(folder / "rare/0.png")
    done = place.ok(*place.training("run", data={"train": f"folder:{folder}"}))
    expect("rare" in done.stderr, "a class without validation images, and nothing is said")


def d6_digits(place):
    """Flips of digits are mentioned."""
    folder = place.tmp / "digits"
    folder.mkdir()
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(
            b"".join(n.to_bytes(4, "big") for n in (0x803, 10, 8, 8)) + bytes(range(10)) * 64)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            b"".join(n.to_bytes(4, "big") for n in (0x801, 10)) + bytes(i % 2 for i in range(10)))
    done = place.ok(*place.training("run", data={"train": f"idx:{folder}"}, augment={"hflip": 0.5}))
    expect("hflip" in done.stderr, f"digits are flipped and nothing is said: {said(done)}")
