"""onnxruntime on the model its own transformer optimizer has fused: attention, bias + GELU, residual + layer norm.

    python -m peers.onnx_optimized IN OUT     fuses, outside the process whose memory is measured; prints what it fused
"""
import sys

from peers.onnx_runtime import Session, converted


def open(case):
    path, fused = converted("peers.onnx_optimized", case["onnx"], "fused")
    return Session(case, path, fused)


def fuse(source, target):
    from onnxruntime.transformers.optimizer import optimize_model
    # Heads and width are read from the graph. The session applies the general optimisations when it opens the file.
    model = optimize_model(source, model_type="vit", num_heads=0, hidden_size=0, opt_level=0)
    model.save_model_to_file(target)
    found = {name: count for name, count in model.get_fused_operator_statistics().items() if count}
    if "Attention" not in found:
        raise RuntimeError("the optimizer found no attention to fuse")
    print("fused " + ", ".join(f"{count} {name}" for name, count in sorted(found.items())))


if __name__ == "__main__":
    fuse(*sys.argv[1:])
