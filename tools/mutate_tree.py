"""The copy of the sources that tools/mutate builds, and what of it a run needs."""
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

READ_BY_TESTS = ["tests/golden", "tests/passes/golden", "tests/data/io", "models", "examples/images", "configs", "fuzz/corpus"]
OF_EVERY_SYSTEM = ("linux-vdso", "ld-linux", "libc.", "libm.", "libdl.", "librt.", "libpthread.", "libstdc++.",
                   "libgcc_s.", "libcuda", "libcublas")


def tracked_files(root):
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, check=True).stdout
    return [name for name in listed.decode().split("\0") if name and (root / name).is_file()]


def write_if_new(path, content):
    """Leaves a file alone that holds this already: what was built from it stays."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def fill(tree, files):
    """Makes `tree` hold these files {name: content} and no others below src and tests."""
    for name, content in files.items():
        write_if_new(tree / name, content)
    for folder in ("src", "tests"):
        for path in (tree / folder).rglob("*"):
            if path.is_file() and path.relative_to(tree).as_posix() not in files:
                path.unlink()


def libraries_of(program):
    """The shared libraries that another host may lack."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    rows = [line.split("=>") for line in listed.splitlines() if "=>" in line]
    return [Path(path.split("(")[0].strip()) for name, path in rows
            if not name.strip().startswith(OF_EVERY_SYSTEM) and path.strip().startswith("/")]


def stage(root, folder, facts, built, programs):
    """Fills a folder with what a run reads, and nothing of the sources."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    (folder / "faults.json").write_text(json.dumps(facts, indent=1))
    plugin = built / "libvitrail_cuda.so"
    for program in [built / name for name in programs] + [plugin] * plugin.exists():
        target = folder / "bin" / program.name
        subprocess.run(["strip", "-o", target, program], check=True)
        for library in libraries_of(program):
            if not (folder / "bin" / library.name).exists():
                shutil.copy(library, folder / "bin" / library.name)
    for name in READ_BY_TESTS:
        if (root / name).exists():
            shutil.copytree(root / name, folder / name)


def pack(staged, folder, runners):
    """All that a run needs elsewhere, but for Python."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / "pack.tar.xz", "w:xz", preset=1) as archive:
        for path in sorted(staged.iterdir()):
            archive.add(path, path.name)
    for runner in runners:
        shutil.copy(Path(__file__).parent / runner, folder / runner)
    print(f"{folder}: {(folder / 'pack.tar.xz').stat().st_size / 2**20:.1f} MiB; there: "
          f"python3 {runners[0]} run . --jobs 16 --results RESULTS")
