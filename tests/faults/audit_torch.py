"""Files as torch.save writes them, made without torch."""
import collections
import io
import pickle
import sys
import types
import zipfile


class FloatStorage:
    pass


def _rebuild_tensor_v2(*_):
    raise AssertionError("only named, never called")


class View:
    """A tensor of f32: so many elements of a storage, from an offset on."""

    def __init__(self, storage, offset, shape):
        self.storage, self.offset, self.shape = storage, offset, shape


class Storage:
    def __init__(self, number, elems):
        self.number, self.elems = number, elems


class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return ("storage", FloatStorage, str(obj.number), "cpu", obj.elems) if isinstance(obj, Storage) else None


def write_torch(path, tree, storages, deflated=True):
    """A nested dict of views as a zip of torch.save."""
    def tensor(view):
        stride = [1]
        for extent in reversed(view.shape[1:]):
            stride.insert(0, stride[0] * extent)
        storage = Storage(view.storage, len(storages[view.storage]) // 4)
        return Reduced(storage, view.offset, tuple(view.shape), tuple(stride), False, collections.OrderedDict())

    def converted(value):
        if isinstance(value, dict):
            return {key: converted(part) for key, part in value.items()}
        return tensor(value) if isinstance(value, View) else value

    FloatStorage.__module__, _rebuild_tensor_v2.__module__ = "torch", "torch._utils"
    stubs = {"torch": types.SimpleNamespace(FloatStorage=FloatStorage),
             "torch._utils": types.SimpleNamespace(_rebuild_tensor_v2=_rebuild_tensor_v2)}
    kept = {name: sys.modules.get(name) for name in stubs}
    sys.modules.update(stubs)
    try:
        out = io.BytesIO()
        Pickler(out, protocol=2).dump(converted(tree))
    finally:
        for name, module in kept.items():
            sys.modules.pop(name) if module is None else sys.modules.__setitem__(name, module)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", out.getvalue())
        for number, data in enumerate(storages):
            archive.writestr(f"archive/data/{number}", data)
        archive.writestr("archive/version", "3\n")


class Reduced:
    def __init__(self, *arguments):
        self.arguments = arguments

    def __reduce__(self):
        return _rebuild_tensor_v2, self.arguments
