#!/usr/bin/env python3
"""Makes a folder of images to stream: crops of the example photographs in varied sizes, JPEG with some PNG.

usage: make_images.py OUT [COUNT]     needs Pillow; the same OUT and COUNT give the same images
       time vitrail predict -m MODEL OUT --timing --quiet > /dev/null
"""
import random
import sys
from pathlib import Path

from PIL import Image

SOURCES = Path(__file__).resolve().parent.parent / "examples" / "images"
PNG_EVERY = 10  # photographs come as JPEG; a few screenshots among them


def crop(image, draw):
    """Crops between a half and the whole of each side, and scales to a usual photograph's size."""
    width, height = (round(side * draw.uniform(0.5, 1)) for side in image.size)
    left, top = draw.randint(0, image.width - width), draw.randint(0, image.height - height)
    part = image.crop((left, top, left + width, top + height))
    scale = draw.choice([320, 480, 500, 640, 800]) / max(part.size)
    return part.resize((round(width * scale), round(height * scale)), Image.Resampling.BILINEAR)


def main(out, count):
    out.mkdir(parents=True, exist_ok=True)
    names = sorted(p for p in SOURCES.iterdir() if p.suffix in (".png", ".jpg"))
    sources = [Image.open(p).convert("RGB") for p in names]
    draw = random.Random(0)
    for i in range(count):
        part = crop(draw.choice(sources), draw)
        if i % PNG_EVERY == PNG_EVERY - 1:
            part.save(out / f"{i:05d}.png", compress_level=6)
        else:
            part.save(out / f"{i:05d}.jpg", quality=draw.choice([75, 85, 92]))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 1000)
