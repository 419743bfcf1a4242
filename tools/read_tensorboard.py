#!/usr/bin/env python3
"""What TensorBoard's own package finds in a folder of event files, as JSON: scalars [step, value], images
[step, width, height, bytes], texts [step, text], by tag.  tools/read_tensorboard.py FOLDER
Exit code 77 when this Python has no tensorboard."""
import json
import sys

MISSING = 77


def read(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    found = EventAccumulator(folder, size_guidance={"scalars": 0, "images": 0, "tensors": 0})
    found.Reload()
    tags = found.Tags()
    return {
        "scalars": {tag: [[e.step, e.value] for e in found.Scalars(tag)] for tag in tags["scalars"]},
        "images": {tag: [[e.step, e.width, e.height, len(e.encoded_image_string)] for e in found.Images(tag)]
                   for tag in tags["images"]},
        "texts": {tag: [[e.step, e.tensor_proto.string_val[0].decode()] for e in found.Tensors(tag)]
                  for tag in tags["tensors"]},
    }


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        print("this Python has no tensorboard package", file=sys.stderr)
        return MISSING
    json.dump(read(sys.argv[1]), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
