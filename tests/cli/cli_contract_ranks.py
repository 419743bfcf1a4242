"""What several ranks may not be given, as processes: exit codes and what they say.  cli_contract_ranks.py PROGRAM [CLASS]"""
import json
import os
import re
import shutil
import subprocess
import unittest
import unittest.mock

import contract
from contract import Contract

RUN = {"model": {"image": 8, "patch": 4, "width": 12, "depth": 2, "heads": 2, "mlp": 24},
       "data": {"train": "synthetic:3x8x8x4x64"},
       "train": {"steps": 2, "batch": 16, "tensorboard": False}, "optim": {"lr": 0.01}}
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Ranks(Contract):
    def setUp(self):
        super().setUp()
        self.config = self.tmp / "run.json"
        self.config.write_text(json.dumps(RUN))
        self.out = self.tmp / "run"

    def words(self, *settings):
        named = [word for setting in settings for word in ("--set", setting)]
        return ["train", "--config", self.config, "--out", self.out, "--threads", "1", *named]

    def not_begun(self):
        self.assertFalse(self.out.exists(), "a mistake must not make a folder")

    def refuses(self, code, text, *settings, more=(), **named):
        done = self.refused(code, text, *self.words(*settings), "--quiet", *more, **named)
        self.not_begun()
        return done


class Starters(Ranks):
    """mpirun, srun and launch, and what may be wrong with them."""

    def setUp(self):
        super().setUp()
        # A session folder of its own: that of other tests would go when their mpirun ends.
        self.by_mpirun = {**AS_ROOT, "OMPI_MCA_orte_tmpdir_base": str(self.tmp)}

    def test_srun_without_pmix(self):
        tasks = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}
        self.refuses(64, "without PMIx(.|\n)*srun --mpi=pmix", env=tasks)
        # One task is a run of its own.
        self.ok(*self.words(), env={**tasks, "SLURM_STEP_NUM_TASKS": "1"})

    def test_a_program_without_its_mpi_plugin(self):
        alone = self.tmp / "bin"
        alone.mkdir()
        shutil.copy2(contract.PROGRAM, alone / "vitrail")
        rank = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
        with unittest.mock.patch.object(contract, "PROGRAM", str(alone / "vitrail")):
            self.refuses(69, "libvitrail_mpi.so is not beside the program(.|\n)*apt install openmpi-bin", env=rank)

    def test_hosts_that_do_not_answer(self):
        hosts = self.tmp / "hosts"
        hosts.write_text("vitrail-nowhere.invalid slots=1\nlocalhost slots=1\n")
        agent = self.tmp / "agent"
        agent.write_text("#!/bin/sh\necho no route >&2\nexit 255\n")
        agent.chmod(0o755)
        for env in ({}, {"OMPI_MCA_plm_rsh_agent": str(agent)}):
            done = contract.vitrail("launch", "--hosts", hosts, *self.words(), env={**self.by_mpirun, **env})
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertRegex(done.stderr.splitlines()[-1], "^error: no command can be started on vitrail-nowhere.invalid ")
            self.not_begun()

    def test_another_number_of_tasks_than_the_mesh(self):
        """Before the data is looked for, which is nowhere: that would be 65."""
        words = self.words("mesh.dp=2", "data.train=folder:/nowhere")
        done = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "4", contract.PROGRAM, *map(str, words)],
                              env={**os.environ, **self.by_mpirun}, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("mesh.dp 2 x mesh.tp 1 x mesh.sp 1 does not make the 4 ranks", done.stderr)
        self.assertIn("try: mesh.dp=4 mesh.tp=1 mesh.sp=1", done.stderr)
        self.assertNotIn("nowhere", done.stderr)
        self.not_begun()

    def test_processes_that_share_some_cores_share_threads(self):
        """A rank on two cores, of which another may run on the first, has threads for one: the rest is not its own."""
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2 or not shutil.which("taskset"):
            self.skipTest("one core, or no taskset")
        words = [contract.PROGRAM, "train", "--config", str(self.config), "--out", str(self.out)]
        bound = [["-n", "1", "taskset", "-c", ",".join(map(str, own)), *words] for own in (cores[:2], cores[:1])]
        done = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", *bound[0], ":", *bound[1]],
                              env={**os.environ, **self.by_mpirun}, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = done.stdout + done.stderr
        self.assertIn("2 ranks (mpi): dp=2", said)
        rows = re.findall(r"^ +([01])  .* (\d+)  \S+ +dp=([01])$", said, re.MULTILINE)
        self.assertEqual(rows, [("0", "1", "0"), ("1", "1", "1")], said)


class Meshes(Ranks):
    """Meshes, shares and stages that do not fit, with what would."""

    def test_a_mesh_that_does_not_make_the_ranks(self):
        for settings, text in [(["mesh.dp=2"], "mesh.dp 2 x mesh.tp 1 x mesh.sp 1 does not make the 3 ranks"),
                               (["mesh.tp=2"], "mesh.tp 2(.|\n)*3 ranks"),
                               (["mesh.dp=2", "mesh.pp=2"], "mesh.pp 2 does not make the 3 ranks")]:
            self.refuses(64, text + "(.|\n)*try: mesh.dp=[13] ", *settings, more=["--ranks", "3"])

    def test_heads_that_do_not_divide(self):
        for axis in ("tp", "sp"):
            self.refuses(64, "2 heads cannot be shared by (.|\n)*tp x sp may be 1, 2", f"mesh.{axis}=3", more=["--ranks", "3"])

    def test_fewer_mix_groups_than_ranks(self):
        self.refuses(64, "a micro-batch of 16 images, in groups of 8(.|\n)*nothing for rank 0 of mesh.dp 3(.|\n)*at least 24",
                     "augment.mixup=0.8", "augment.mix_group=8", more=["--ranks", "3"])

    def test_shares_that_do_not_fit(self):
        two = ["--ranks", "2"]
        self.refuses(64, r"mesh.balance=\[8,4\]: they make 12 images(.|\n)*nearest(.|\n)*mesh.balance=\[10,6\]",
                     "mesh.balance=[8,4]", more=two)
        self.refuses(64, "there are 2 of them for mesh.dp 3", "mesh.balance=[8,8]", more=["--ranks", "3"])
        self.refuses(64, r"7 of rank 0 is no multiple of the 4(.|\n)*nearest(.|\n)*mesh.balance=\[8,8\]", "mesh.balance=[7,9]",
                     "augment.mixup=0.8", "augment.mix_group=4", more=two)
        self.refuses(64, "mesh.balance holds", "mesh.balance=[8,x]", more=two)

    def test_more_stages_than_blocks(self):
        self.refuses(64, "a pipeline of 3 stages(.|\n)*for 2 blocks", "mesh.pp=3", "train.accumulation=4",
                     "train.micro_batch=4", more=["--ranks", "3"])
        self.refuses(64, "mesh.stages names 1 blocks; expected 1(.|\n)*blocks.1 to blocks.1", "mesh.pp=2", "mesh.stages=blocks.2",
                     "train.accumulation=4", "train.micro_batch=4", more=["--ranks", "2"])


class DeepSpeed(Ranks):
    """Files of DeepSpeed's that cannot be read, or ask for what nobody has."""

    def test_files(self):
        self.config.write_text(json.dumps({**RUN, "train": {"steps": 2, "tensorboard": False}}))
        for text, said in [
                ("stage: 2", "ds.json:1:"),
                ('{"train_batch_size": 8, "train_batch_size": 16}', "train_batch_size"),
                ('{"train_batch_size": 99999999999999999999999}', "ds.json:1:"),
                ('{"train_batch_size": 9007199254740993}', "train_batch_size"),
                ('{"train_batch_size": 8, "zero_optimization": {"stage": 4}}', "zero_optimization.stage is 4"),
                ('{"train_batch_size": "auto"}', "nothing says how large a batch is"),
                ('{"train_batch_size": 8, "optimizer": {"type": "auto"}}', "optimizer.type")]:
            with self.subTest(text):
                path = self.tmp / "ds.json"
                path.write_text(text)
                self.refuses(64, said, more=["--deepspeed", path])
                self.refused(64, said, "plan", "--config", self.config, "--deepspeed", path)
        self.refuses(64, "nowhere.json", more=["--deepspeed", self.tmp / "nowhere.json"])


if __name__ == "__main__":
    unittest.main()
