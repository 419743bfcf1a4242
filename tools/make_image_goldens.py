#!/usr/bin/env python3
"""Writes tests/golden/images/: small sample files of every kind with the checksum of the pixels Pillow
decodes, and tables of resize and preprocess cases with what Pillow, torchvision, timm and transformers
answer. Needs Pillow, numpy, torch, torchvision, timm, transformers. TensorFlow's two resamplings are computed here in numpy float32.

Images for the tables are noise by a rule the tests compute too, see noise()."""
import io
import math
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image
from timm.data import create_transform
from timm.data.transforms import ResizeKeepRatio
from torchvision import transforms
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "images"
FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
}


def hashed(count, seed):
    """One byte per index: a 32-bit mix of (index, seed)."""
    h = (np.arange(count, dtype=np.uint64) + seed * 0x9E3779B9) & 0xFFFFFFFF
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h ^= h >> shift
        h = (h * factor) & 0xFFFFFFFF
    return ((h ^ (h >> 16)) >> 24).astype(np.uint8)


def noise(height, width, channels, seed):
    """Even seeds: bytes; odd seeds: black or white, so that every overshoot is clipped."""
    data = hashed(height * width * channels, seed)
    if seed % 2:
        data = np.where(data >= 128, 255, 0).astype(np.uint8)
    return data.reshape(height, width, channels)


def pillow_image(array):
    return Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)


def crc(array):
    return f"{zlib.crc32(np.ascontiguousarray(array).tobytes()):08x}"


def samples(array, count):
    flat = array.reshape(-1)
    return [flat[i * flat.size // count] for i in range(count)]


# ---- resize


def resize_cases():
    rng = np.random.default_rng(5)
    sides = [1, 2, 3, 5, 7, 8, 13, 16, 31, 33, 64, 100]
    for width, height in [(1, 1), (1, 9), (9, 1), (1, 300), (300, 1), (2, 2), (17, 23), (64, 48), (101, 67)]:
        for width2, height2 in [(1, 1), (1, 7), (7, 1), (2, 3), (17, 23), (32, 32), (150, 40), (224, 224)]:
            yield width, height, width2, height2
    for side in range(1, 65):
        yield side, 65 - side, 7, 32
        yield side, side, 48, 48
    for _ in range(120):
        yield tuple(int(rng.choice(sides)) for _ in range(4))
    for _ in range(120):
        yield tuple(int(rng.integers(1, 200)) for _ in range(4))
    yield from [(5000, 1, 224, 224), (1, 5000, 224, 224), (2000, 2, 256, 8), (512, 384, 341, 256), (640, 480, 298, 224)]


def write_resize():
    lines = ["# interpolation seed channels width height -> width2 height2 crc32 4 samples"]
    for number, (width, height, width2, height2) in enumerate(resize_cases()):
        for k, name in enumerate(FILTERS):
            if number > 150 and (number + k) % 5 > 1:
                continue
            seed, channels = number * 5 + k, (3, 3, 1)[number % 3]
            array = noise(height, width, channels, seed)
            result = np.asarray(pillow_image(array).resize((width2, height2), FILTERS[name]))
            values = " ".join(str(v) for v in samples(result, 4))
            lines.append(f"{name} {seed} {channels} {width} {height} {width2} {height2} {crc(result)} {values}")
    (OUT / "resize.txt").write_text("\n".join(lines) + "\n")
    print(len(lines) - 1, "resize cases")


# ---- preprocess


def tf_bilinear(array, height, width):
    f = np.float32

    def positions(n_in, n_out):
        at = (np.arange(n_out, dtype=f) + f(0.5)) * (f(n_in) / f(n_out)) - f(0.5)
        low = np.floor(at)
        lower = np.maximum(low.astype(np.int64), 0)
        upper = np.minimum(np.ceil(at).astype(np.int64), n_in - 1)
        return lower, upper, (at - low).astype(f)

    y0, y1, fy = positions(array.shape[0], height)
    x0, x1, fx = positions(array.shape[1], width)
    a, fx, fy = array.astype(f), fx[None, :, None], fy[:, None, None]
    top = a[y0][:, x0] + (a[y0][:, x1] - a[y0][:, x0]) * fx
    bottom = a[y1][:, x0] + (a[y1][:, x1] - a[y1][:, x0]) * fx
    return top + (bottom - top) * fy


def tf_area(array, height, width):
    f = np.float32

    def cells(n_in, n_out, i):
        scale = f(n_in) / f(n_out)
        start, stop = f(i) * scale, f(i + 1) * scale
        for cell in range(int(np.floor(start)), int(np.ceil(stop))):
            if cell < start:
                share = scale if cell + 1 > stop else f(cell + 1) - start
            else:
                share = stop - f(cell) if cell + 1 > stop else f(1)
            yield min(cell, n_in - 1), f(share)

    normal = f(1) / ((f(array.shape[0]) / f(height)) * (f(array.shape[1]) / f(width)))
    result = np.zeros((height, width, array.shape[2]), f)
    for y in range(height):
        for x in range(width):
            total = np.zeros(array.shape[2], f)
            for row, share_y in cells(array.shape[0], height, y):
                part = np.zeros(array.shape[2], f)
                for column, share_x in cells(array.shape[1], width, x):
                    part += array[row, column].astype(f) * share_x
                total += part * share_y
            result[y, x] = total * normal
    return np.clip(result, 0, 255).astype(np.uint8)


def tf_eval(array, case):
    height, width = case["height"], case["width"]
    if case["mode"] == "stretch":
        full = (height, width)
    else:
        factor = np.float32(case["resize"]) / np.float32(min(array.shape[:2]))
        full = tuple(int(np.round(np.float32(n) * factor)) for n in array.shape[:2])
    big = (tf_bilinear if case["resampler"] == "tf" else tf_area)(array, *full)
    top, left = (full[0] - height) // 2, (full[1] - width) // 2
    return big[top : top + height, left : left + width]


def pillow_eval(array, case):
    height, width, resize = case["height"], case["width"], case["resize"]
    mode = transforms.InterpolationMode(case["interpolation"])
    if case["mode"] == "stretch":
        steps = [transforms.Resize((height, width), interpolation=mode)]
    elif height == width:
        steps = [transforms.Resize(resize or height, interpolation=mode), transforms.CenterCrop((height, width))]
    else:
        scale = (resize, case["resize_longer"]) if height < width else (case["resize_longer"], resize)
        steps = [ResizeKeepRatio(scale, interpolation=case["interpolation"]), transforms.CenterCrop((height, width))]
    image = pillow_image(array)
    if case["channels"] == 1:
        image = image.convert("L")
    result = np.asarray(transforms.Compose(steps)(image))
    return result.reshape(height, width, -1)


def squash_eval(array, case):
    """timm's crop_mode "squash"."""
    transform = create_transform(
        (3, case["height"], case["width"]), interpolation=case["interpolation"], crop_pct=case["crop_pct"],
        crop_mode="squash", use_prefetcher=True)
    return np.asarray(transform(pillow_image(array))).transpose(1, 2, 0)


def hf_eval(array, case):
    """transformers' processors, up to 8-bit pixels."""
    height, width = case["height"], case["width"]
    if case["mode"] == "stretch_crop":
        sides = (case["resize"], case["resize_longer"] or case["resize"])
        rows, columns = sides if height <= width else sides[::-1]
        kind, size = DeiTImageProcessorPil, {"height": rows, "width": columns}
    else:
        kind, size = CLIPImageProcessorPil, {"shortest_edge": case["resize"]}
    processor = kind(size=size, crop_size={"height": height, "width": width}, resample=FILTERS[case["interpolation"]],
                     do_rescale=False, do_normalize=False)
    pixels = np.asarray(processor(pillow_image(array), return_tensors="np")["pixel_values"][0])
    return np.rint(pixels).astype(np.uint8).transpose(1, 2, 0)


def normalise(result, case):
    f = np.float32
    mean, std = (np.asarray(case[k], f) for k in ("mean", "std"))
    return ((result.astype(f) / f(255) - mean) / std).transpose(2, 0, 1)


IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
HALF = {"mean": (0.5,), "std": (0.5,)}


def preprocess_cases():
    base = dict(mode="shorter_side", interpolation="bicubic", resampler="pillow", channels=3, resize_longer=0,
                odd_margin="half_even", evaluate=pillow_eval)
    sizes = [(97, 61), (61, 97), (64, 64), (33, 200), (300, 20), (1, 1), (3, 90), (256, 249), (249, 256)]
    for width, height in sizes:
        for crop, resize in [(56, 64), (56, 62), (48, 0), (64, 48), (55, 64), (33, 40)]:
            for interpolation in ("bicubic", "bilinear"):
                yield base | IMAGENET | dict(
                    height=crop, width=crop, resize=resize, interpolation=interpolation), width, height
        for crop_height, crop_width, pct in [(32, 48, 0.9), (48, 32, 0.9), (40, 20, 1.0), (31, 77, 0.875)]:
            shorter, longer = sorted((crop_height, crop_width))
            yield base | HALF | dict(
                height=crop_height, width=crop_width, resize=math.floor(shorter / pct),
                resize_longer=math.floor(longer / pct)), width, height
        for interpolation in ("bilinear", "bicubic", "lanczos", "nearest", "box"):
            yield base | HALF | dict(
                mode="stretch", height=40, width=56, resize=0, interpolation=interpolation), width, height
        yield base | HALF | dict(height=28, width=28, resize=32, channels=1), width, height
        tf = base | HALF | dict(interpolation="bilinear", resampler="tf", evaluate=tf_eval)
        yield tf | dict(mode="stretch", height=48, width=40, resize=0), width, height
        yield tf | dict(height=24, width=24, resize=32), width, height
        yield tf | dict(resampler="tf_area", height=24, width=24, resize=29), width, height
        yield tf | dict(resampler="tf_area", mode="stretch", height=20, width=31, resize=0), width, height
    for width, height in [(97, 61), (33, 200), (1, 1), (251, 256)]:
        for crop_height, crop_width, pct in [(48, 48, 0.95), (48, 48, 0.875), (32, 48, 0.9), (48, 31, 0.875)]:
            sides = [math.floor(n / pct) for n in sorted((crop_height, crop_width))]
            yield base | HALF | dict(
                mode="stretch_crop", height=crop_height, width=crop_width, resize=sides[0], crop_pct=pct,
                resize_longer=0 if crop_height == crop_width else sides[1], evaluate=squash_eval), width, height
        hf = base | IMAGENET | dict(odd_margin="down", evaluate=hf_eval)
        for crop, resize, longer in [((28, 28), 32, 0), ((28, 28), 35, 0), ((28, 28), 31, 42), ((20, 31), 23, 34)]:
            yield hf | dict(mode="stretch_crop", height=crop[0], width=crop[1], resize=resize,
                            resize_longer=longer), width, height
        for crop, resize in [((28, 28), 32), ((28, 28), 31), ((20, 27), 33)]:
            longer = 0 if crop[0] == crop[1] else resize
            yield hf | dict(height=crop[0], width=crop[1], resize=resize, resize_longer=longer), width, height


def write_preprocess():
    lines = ["# mode interpolation resampler channels height width resize resize_longer odd_margin mean,.. std,.. seed"
             " width height crc32-of-8-bit-crop 8 samples of the normalised planes"]
    for seed, (case, width, height) in enumerate(preprocess_cases()):
        array = noise(height, width, 3, seed)
        result = case["evaluate"](array, case)
        planes = normalise(result, case)
        check = crc(result) if result.dtype == np.uint8 and case["channels"] == 3 else "-"
        numbers = [",".join(map(str, case[k])) for k in ("mean", "std")]
        keys = ("mode", "interpolation", "resampler", "channels", "height", "width", "resize", "resize_longer",
                "odd_margin")
        values = [f"{v:.9g}" for v in samples(planes, 8)]
        lines.append(" ".join([*(str(case[k]) for k in keys), *numbers, str(seed), str(width), str(height), check,
                               *values]))
    (OUT / "preprocess.txt").write_text("\n".join(lines) + "\n")
    print(len(lines) - 1, "preprocess cases")


# ---- sample files


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def packed(rows, depth):
    """Rows of samples (values below 2**depth) as PNG scanlines without filters."""
    out = b""
    for row in rows:
        flat = row.reshape(-1)
        if depth == 16:
            body = flat.astype(">u2").tobytes()
        elif depth == 8:
            body = flat.astype(np.uint8).tobytes()
        else:
            bits = "".join(format(int(v), f"0{depth}b") for v in flat)
            bits += "0" * (-len(bits) % 8)
            body = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
        out += b"\0" + body
    return out


ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def png(values, depth, colour, interlace, extra=b""):
    """`values`: height x width x samples, in 0..2**depth-1. colour: PNG's colour type."""
    height, width = values.shape[:2]
    if interlace:
        passes = [values[y::dy, x::dx] for y, x, dy, dx in ADAM7]
        raw = b"".join(packed(p, depth) for p in passes if p.size)
    else:
        raw = packed(values, depth)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(raw, 9))
            + chunk(b"IEND", b""))


PNG_KINDS = {  # name: colour type, samples, depths
    "grey": (0, 1, (1, 2, 4, 8, 16)), "rgb": (2, 3, (8, 16)), "palette": (3, 1, (1, 2, 4, 8)),
    "greyalpha": (4, 2, (8, 16)), "rgba": (6, 4, (8, 16)),
}


def png_files():
    height, width = 7, 11
    for kind, (colour, count, depths) in PNG_KINDS.items():
        for depth in depths:
            noise16 = hashed(height * width * count, depth).astype(np.uint32) * 257 + np.arange(height * width * count)
            values = (noise16 % (1 << depth)).reshape(height, width, count)
            palette = hashed(3 * min(256, 1 << depth), 77).tobytes()
            extra = chunk(b"PLTE", palette) if kind == "palette" else b""
            for interlace in (0, 1):
                yield f"{kind}{depth}{'_interlaced' if interlace else ''}.png", png(values, depth, colour, interlace, extra)
    grey = hashed(77, 1).reshape(7, 11, 1)
    rgb = hashed(231, 2).reshape(7, 11, 3)
    palette = chunk(b"PLTE", hashed(768, 78).tobytes())
    yield "palette_transparent.png", png(grey, 8, 3, 0, palette + chunk(b"tRNS", hashed(200, 3).tobytes()))
    yield "grey_transparent.png", png(grey, 8, 0, 0, chunk(b"tRNS", struct.pack(">H", int(grey[0, 0, 0]))))
    yield "rgb_transparent.png", png(rgb, 8, 2, 1, chunk(b"tRNS", struct.pack(">HHH", *map(int, rgb[0, 0]))))
    exif = Image.Exif()
    exif[0x0112] = 8
    extras = chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(b"tEXt", b"Comment\0hello")
    yield "rgb_gamma_exif.png", png(rgb, 8, 2, 0, extras + chunk(b"eXIf", exif.tobytes()[6:]))


def saved(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def without_segment(data, marker):
    at = data.index(b"\xff" + marker)
    return data[:at] + data[at + 2 + struct.unpack(">H", data[at + 2 : at + 4])[0] :]


def smooth(channels):
    y, x = np.mgrid[0:19, 0:27]
    planes = [(127 + 120 * np.sin(x / (3 + c) + y / (5 - c % 3))).astype(np.uint8) for c in range(channels)]
    return np.stack(planes, axis=2)


def jpeg_files():
    rgb, cmyk = Image.fromarray(smooth(3)), Image.fromarray(smooth(4), "CMYK")
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        yield f"ycbcr_{name}.jpg", saved(rgb, "jpeg", quality=80, subsampling=subsampling)
        yield f"ycbcr_{name}_progressive.jpg", saved(rgb, "jpeg", quality=60, subsampling=subsampling, progressive=True)
    yield "grey.jpg", saved(rgb.convert("L"), "jpeg", quality=70)
    yield "stored_rgb.jpg", saved(rgb, "jpeg", quality=70, keep_rgb=True)
    yield "restart.jpg", saved(rgb, "jpeg", quality=70, restart_marker_blocks=2)
    exif = Image.Exif()
    exif[0x0112] = 6
    yield "exif6.jpg", saved(rgb, "jpeg", quality=30, exif=exif)
    adobe = saved(cmyk, "jpeg", quality=80)
    yield "cmyk_adobe.jpg", adobe
    yield "cmyk_unmarked.jpg", without_segment(adobe, b"\xee")
    at = adobe.index(b"Adobe") + 11
    yield "ycck.jpg", adobe[:at] + b"\x02" + adobe[at + 1 :]


def webp_files():
    rgb, rgba = Image.fromarray(smooth(3)), Image.fromarray(smooth(4), "RGBA")
    exif = Image.Exif()
    exif[0x0112] = 3
    yield "lossy.webp", saved(rgb, "webp", quality=70)
    yield "lossless.webp", saved(rgb, "webp", lossless=True)
    yield "lossy_alpha.webp", saved(rgba, "webp", quality=70)
    yield "lossless_alpha.webp", saved(rgba, "webp", lossless=True, exact=True)
    yield "lossy_exif.webp", saved(rgb, "webp", quality=40, exif=exif)


def expected(data):
    """What Pillow decodes; of 16-bit grey, which Pillow saturates, the top byte."""
    image = Image.open(io.BytesIO(data))
    if image.mode == "I;16":
        return np.repeat((np.asarray(image) >> 8).astype(np.uint8)[:, :, None], 3, axis=2)
    return np.asarray(image.convert("RGB"))


def write_samples():
    lines = ["# file width height exif-orientation crc32-of-rgb"]
    total = 0
    for name, data in [*png_files(), *jpeg_files(), *webp_files()]:
        (OUT / name).write_bytes(data)
        pixels = expected(data)
        orientation = Image.open(io.BytesIO(data)).getexif().get(0x0112, 0)
        lines.append(f"{name} {pixels.shape[1]} {pixels.shape[0]} {orientation} {crc(pixels)}")
        total += len(data)
    (OUT / "samples.txt").write_text("\n".join(lines) + "\n")
    frames = [Image.fromarray(smooth(3)), Image.fromarray(smooth(3)[::-1])]
    (OUT / "animated.webp").write_bytes(saved(frames[0], "webp", save_all=True, append_images=frames[1:], quality=20))
    print(len(lines) - 1, "sample files,", total, "bytes")


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    write_samples()
    write_resize()
    write_preprocess()
