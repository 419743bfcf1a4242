#!/usr/bin/env python3
"""deploy/kubernetes holds what the MPI Operator's v2beta1 knows, and commands that vitrail knows.  manifest_test.py VITRAIL

There is no Kubernetes here: field names and their places are compared with the tables below, and what must agree across a
manifest is compared with itself. Skipped (77) without Python's yaml."""
import subprocess
import sys
from pathlib import Path

try:
    import yaml
except ImportError:
    print("manifests: skipped: python3-yaml not installed")
    sys.exit(77)

FOLDER = Path(__file__).resolve().parent.parent.parent / "deploy" / "kubernetes"
QUANTITIES = {"cpu": str, "memory": str, "nvidia.com/gpu": int, "storage": str}
# A dict: fields that may be there; a list: of such; a type or a tuple of values: what stands there.
METADATA = {"name": str, "namespace": str, "labels": dict, "annotations": dict}
CONTAINER = {
    "name": str, "image": str, "command": [str], "args": [str], "env": [{"name": str, "value": str}],
    "ports": [{"containerPort": int}], "resources": {"limits": QUANTITIES, "requests": QUANTITIES},
    "readinessProbe": {"tcpSocket": {"port": int}, "periodSeconds": int},
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}]}
POD = {"metadata": METADATA, "spec": {
    "containers": [CONTAINER], "terminationGracePeriodSeconds": int, "nodeSelector": dict, "tolerations": [dict],
    "volumes": [{"name": str, "persistentVolumeClaim": {"claimName": str},
                 "emptyDir": {"medium": ("Memory", ""), "sizeLimit": str}}]}}
REPLICA = {"replicas": int, "restartPolicy": ("Never", "OnFailure"), "template": POD}
KINDS = {
    ("kubeflow.org/v2beta1", "MPIJob"): {
        "slotsPerWorker": int, "runLauncherAsWorker": bool, "sshAuthMountPath": str,
        "launcherCreationPolicy": ("AtStartup", "WaitForWorkersReady"), "mpiImplementation": ("OpenMPI", "Intel", "MPICH"),
        "runPolicy": {"cleanPodPolicy": ("None", "Running", "All"), "ttlSecondsAfterFinished": int,
                      "activeDeadlineSeconds": int, "backoffLimit": int, "suspend": bool, "schedulingPolicy": dict},
        "mpiReplicaSpecs": {"Launcher": REPLICA, "Worker": REPLICA}},
    ("v1", "PersistentVolumeClaim"): {
        "accessModes": [("ReadWriteMany",)], "storageClassName": str, "resources": {"requests": QUANTITIES}}}


def problems(value, known, where):
    """What of a manifest is not in the table."""
    if isinstance(known, dict):
        if not isinstance(value, dict):
            yield f"{where} is {value!r}"
            return
        for key, inner in value.items():
            if key in known:
                yield from problems(inner, known[key], f"{where}.{key}")
            else:
                yield f"{where}.{key} is no field"
    elif isinstance(known, list):
        if not isinstance(value, list):
            yield f"{where} is no list"
            return
        for number, inner in enumerate(value):
            yield from problems(inner, known[0], f"{where}[{number}]")
    elif isinstance(known, tuple):
        if value not in known:
            yield f"{where} is {value!r}, not one of {known}"
    elif not isinstance(value, known) or isinstance(value, bool) != (known is bool):
        yield f"{where} is {value!r}, not {known.__name__}"


def disagreements(job, claims, options):
    """Within one MPIJob."""
    spec, replicas = job["spec"], job["spec"]["mpiReplicaSpecs"]
    for role, replica in replicas.items():
        pod = replica["template"]["spec"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounted = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        if set(volumes) != set(mounted):
            yield f"{role} mounts {sorted(mounted)} and has {sorted(volumes)}"
        if mounted.get("runs") != "/runs" or volumes["runs"]["persistentVolumeClaim"]["claimName"] not in claims:
            yield f"{role} has no /runs"
    launcher, worker = (replicas[role]["template"]["spec"]["containers"][0] for role in ("Launcher", "Worker"))
    if launcher["image"] != worker["image"] or worker["args"] != ["sshd"] or replicas["Launcher"]["replicas"] != 1:
        yield "launcher and worker do not fit each other"
    gpus = worker["resources"]["limits"].get("nvidia.com/gpu", 0)
    if gpus and gpus != spec["slotsPerWorker"]:
        yield f"{spec['slotsPerWorker']} slots a worker and {gpus} GPUs"
    if bool(gpus) != ("cuda" in launcher["args"]):
        yield f"{gpus} GPUs, and {launcher['args']}"
    unknown = [word for word in launcher["args"] if word.startswith("--") and word not in options]
    if unknown or launcher["args"][:3] != ["launch", "--hosts", "/etc/mpi/hostfile"]:
        yield f"vitrail has no {unknown}"


def main():
    vitrail = sys.argv[1]
    options = "".join(subprocess.run([vitrail, command, "--help"], capture_output=True, text=True, check=True).stdout
                      for command in ("launch", "train"))
    found, jobs, claims = [], {}, set()
    for path in sorted(FOLDER.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            kind = KINDS.get((document["apiVersion"], document["kind"]))
            if kind is None:
                found.append(f"{path.name}: unknown kind {document['kind']}")
                continue
            known = {"apiVersion": str, "kind": str, "metadata": METADATA, "spec": kind}
            found += [f"{path.name}: {text}" for text in problems(document, known, document["kind"])]
            if document["kind"] == "MPIJob":
                jobs[path.name] = document
            else:
                claims.add(document["metadata"]["name"])
    for name, job in jobs.items():
        found += [f"{name}: {text}" for text in disagreements(job, claims, options)]
    if len(jobs) < 2:
        found.append("a variant for GPUs and one for CPUs are expected")
    # The table can fail.
    wrong = {"slotsPerWorker": "4", "mpiReplicaSpecs": {"Launcher": {"replica": 1}, "Master": {}}}
    if len(list(problems(wrong, KINDS[("kubeflow.org/v2beta1", "MPIJob")], "spec"))) != 3:
        found.append("the table does not find planted mistakes")
    print(f"manifests: {len(jobs)} jobs, {len(found)} problems", *found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
