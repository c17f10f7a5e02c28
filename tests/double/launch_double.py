"""A double of the launch: behaves like ``torchrun … -m validator.workload.entry REQUEST.json``, in a few milliseconds a
step.

Run in place of a Python interpreter (the ``double`` fixture writes the wrapper that ``--python`` then names). Its
"training" is a recurrence of hashes over a few small tensors, so bits depend on seed, rank, step and restored state
as in a real run. The environment variable DOUBLE names a JSON file of faults: ``{launch name or "*": {fault:
setting}}``; the launch's name is that of the folder its request lies in. Everything that is no launch goes to the
real interpreter.

Faults: diverge {step, group, leaf}, random {step}, hang {step}, crash {step}, kill_rank {step, rank}, stops {step}
(comes to its end after it, as if that were all), fewer_ranks true (in what its files say), missing_package NAME, says
SENTENCE, full {step}, blind true, unmapped [names], skip_group NAME, frozen NAME, deaf_flips true, stuck_flips true,
wrong_answers true, other_sample true, no_samples true, nan {step}, lost_rng true, rank_rng true, cpu_draw true,
lost_optimizer true, save_disturbs true, unsaved [names], no_tracker true, strays true, slow SECONDS, no_ending true,
hidden true, no_account true, jump FACTOR, packages {name: version} (what it claims), claims {name: anything} (the
same). Of a measured launch: step_seconds {deterministic: SECONDS, default: SECONDS, fill: SECONDS}, jitter SHARE,
no_measurement true, few_steps true, profile_crash true, gpu STATE (what nvidia-smi says). Of a traced launch: module
PATH (comes to something else), untraced true (no update in the trace), no_trace true.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

LEAVES = {
    "gradients": ("decoder.layers.0.weight", "decoder.layers.1.weight", "embedding.weight"),
    "parameters": ("decoder.layers.0.weight", "decoder.layers.1.weight", "embedding.weight"),
    "main_parameters": ("decoder.layers.0.weight", "decoder.layers.1.weight", "embedding.weight"),
    "optimizer": ("decoder.layers.0.weight.exp_avg", "decoder.layers.1.weight.exp_avg_sq", "step"),
    "buffers": ("router.expert_bias",),
    "rng": ("cpu", "expert-parallel-rng", "model-parallel-rng"),
    "data_position": ("consumed_train_samples",),
    "schedule": ("num_steps",),
    "batch": ("tokens", "labels"),
}
PERSISTENT = ("parameters", "main_parameters", "optimizer", "buffers", "rng", "data_position", "schedule")
WIDTH = 32

State = dict[str, dict[str, bytes]]


def mix(*parts: object) -> bytes:
    """32 bytes that depend on every part."""
    return hashlib.sha256("|".join(p.hex() if isinstance(p, bytes) else str(p) for p in parts).encode()).digest()


def option(arguments: tuple[str, ...], name: str) -> str | None:
    return arguments[arguments.index(name) + 1] if name in arguments else None


class Rank:
    """One rank of the double."""

    def __init__(self, request, faults: dict, rank: int) -> None:
        from validator.trajectory.writer import RankWriter

        self.request, self.faults, self.rank = request, faults, rank
        ranks = 1 if faults.get("fewer_ranks") else request.ranks
        recorded = request.record and rank < ranks
        self.writer = RankWriter(request.trajectory, rank, ranks) if recorded else None
        self.tables: dict[str, object] = {}
        self.state = self.initial()

    def initial(self) -> State:
        seed = self.request.seed
        variables = sorted((k, v) for k, v in os.environ.items() if k.startswith(("ATEN_", "MKL_")))
        library = Path("/usr/lib/mathlib/version")  # of a system package that computes, where an image has it
        variables += [("mathlib", library.read_text())] if library.exists() else []
        state = {g: {n: mix(seed, variables, self.rank, g, n) for n in LEAVES[g]} for g in PERSISTENT}
        state["rng"]["cpu"] = mix(seed, "cpu")
        state["data_position"]["consumed_train_samples"] = struct.pack("<q", 0)
        state["schedule"]["num_steps"] = struct.pack("<q", 0)
        return state

    def fault(self, name: str, step: int) -> bool:
        setting = self.faults.get(name)
        return isinstance(setting, dict) and setting.get("step") == step and setting.get("rank", self.rank) == self.rank

    def table(self, group: str):
        from validator.trajectory.leaves import LeafKey, LeafTable

        if group not in self.tables:
            scalar = group in {"data_position", "schedule"}
            self.tables[group] = LeafTable(
                tuple(LeafKey(n, "int64" if scalar else "uint8", () if scalar else (WIDTH,)) for n in LEAVES[group])
            )
        return self.tables[group]

    def record_of(self, group: str, contents: dict[str, bytes]):
        from validator.trajectory.leaves import leaf_digest
        from validator.trajectory.record import GroupRecord

        table = self.table(group)
        if self.faults.get("blind"):
            return GroupRecord(table, bytes(16) * len(table))
        return GroupRecord(table, b"".join(leaf_digest(key, contents[key.name]) for key in table.keys))

    def fingerprint(self, phase: str, step: int, state: State, metrics: dict) -> None:
        from validator.trajectory.groups import Group, Moment, Phase

        moment = Moment(step, Phase(phase))
        groups = {
            Group(g): self.record_of(g, contents) for g, contents in state.items() if g != self.faults.get("skip_group")
        }
        if self.request.switches.get("witness") and not self.faults.get("no_account"):
            self.account(str(moment), state, metrics)
        if not self.faults.get("no_samples"):
            self.hand_over(str(moment), state, metrics)  # first: a launch may be killed once its moment is recorded
        if self.writer:
            self.writer.append(moment, groups, metrics)

    def account(self, moment: str, state: State, metrics: dict) -> None:
        """What ``validator/faults/witness.py`` writes: one line a moment, that no recorder has seen."""
        hidden = moment if self.faults.get("hidden") else ""
        line = {"moment": moment, "state": mix(hidden, repr(state), repr(metrics)).hex()}
        with (self.request.scratch / f"witness-{self.rank:05d}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def hand_over(self, moment: str, state: State, metrics: dict) -> None:
        directory = self.request.samples_directory
        for sample in self.request.samples:
            if (sample.rank, sample.moment) != (self.rank, moment):
                continue
            directory.mkdir(exist_ok=True)
            if sample.group == "metrics":
                name = list(metrics)[sample.pick % len(metrics)]
                dtype, shape = metrics[name].dtype, ()
                content = bytes.fromhex(metrics[name].bits)[::-1]
            else:
                key = self.table(sample.group).keys[sample.pick % len(self.table(sample.group))]
                name, dtype, shape = key.name, key.dtype, key.shape
                content = state[sample.group][name]
            if self.faults.get("other_sample"):
                content = bytes([content[0] ^ 1]) + content[1:]
            (directory / f"{sample.stem}.bin").write_bytes(content)
            leaf = {"name": name, "dtype": dtype, "shape": list(shape), "shard": ""}
            text = {"moment": moment, "group": sample.group, "leaf": leaf}
            (directory / f"{sample.stem}.json").write_text(json.dumps(text))

    def train(self, step: int) -> tuple[State, dict]:
        from validator.trajectory.metrics import Metric

        state = self.state
        before = {g: dict(leaves) for g, leaves in state.items()}
        batch = {
            n: mix(self.request.seed, "batch", n, step, state["data_position"]["consumed_train_samples"])
            for n in LEAVES["batch"]
        }
        mask = mix(state["rng"]["model-parallel-rng"])
        gradients = {n: mix("gradient", state["parameters"][n], *batch.values(), mask) for n in LEAVES["gradients"]}
        if self.fault("random", step):
            gradients["embedding.weight"] = os.urandom(WIDTH)
        for group in ("optimizer", "main_parameters", "parameters", "buffers"):
            if group != self.faults.get("frozen"):
                parts = [*gradients.values(), *(state["optimizer"].values() if group != "optimizer" else ())]
                state[group] = {n: mix(group, n, content, *parts) for n, content in state[group].items()}
        state["rng"]["model-parallel-rng"] = mix("draw", mask)
        samples = struct.unpack("<q", state["data_position"]["consumed_train_samples"])[0]
        state["data_position"]["consumed_train_samples"] = struct.pack("<q", samples + 4)
        state["schedule"]["num_steps"] = struct.pack("<q", samples // 4 + 1)
        whole = {**state, "gradients": gradients, "batch": batch}
        if self.fault("diverge", step):
            where = self.faults["diverge"]
            contents = whole[where.get("group", "parameters")]
            leaf = where.get("leaf", next(iter(contents)))
            contents[leaf] = mix("another", contents[leaf])
        if self.request.trace == step:
            self.trace(before, whole)
        # All ranks see the same reduced values, as train_step returns them.
        noise = mix("loss", self.request.seed, step, state["optimizer"]["step"] if self.request.ranks == 1 else b"")[0]
        loss = (5.5 - 0.1 * step + noise * 2**-20) * self.faults.get("jump", 1.0)
        loss = float("nan") if self.fault("nan", step) else loss
        metrics = {"lm loss": Metric.of(loss, "float32"), "grad norm": Metric.of(1 + noise / 512, "float64")}
        return whole, metrics

    def trace(self, before: State, whole: State) -> None:
        """The step as calls: forward of two layers, a gradient and an update each."""

        def named(contents: State, *groups: str) -> dict[str, str]:
            return {f"{g}/{n}": c.hex()[:16] for g in groups for n, c in contents[g].items()}

        request, weights = self.request, named(before, "parameters")
        events: list[dict[str, object]] = []

        def event(phase: str, module: str, inputs: dict, outputs: dict, **more: object) -> None:
            number = len(events)
            call = number if phase in {"forward", "backward"} else None
            plain = {"event": number, "phase": phase, "micro_batch": 0 if call is not None else None, "module": module,
                     "name": "", "call": call, "parent": None, "inputs": inputs, "outputs": outputs}  # fmt: skip
            events.append({**plain, **more})

        batch = named(whole, "batch")
        event("start", "", {}, named(before, *PERSISTENT))
        event("batch", "", {}, batch)
        hidden = mix(*batch.values()).hex()[:16]
        for layer in ("decoder.layers.0", "decoder.layers.1"):
            inputs = {"input 0": hidden, f"parameters/{layer}.weight": weights[f"parameters/{layer}.weight"]}
            hidden = mix(*inputs.values()).hex()[:16]
            if self.faults.get("module") == layer:
                hidden = mix("another", hidden).hex()[:16]
            event("forward", layer, inputs, {"output": hidden})
        for name, gradient in whole["gradients"].items():
            inputs = {"gradient of output": hidden}
            event("backward", name.rpartition(".")[0], inputs, {"gradient of weight": gradient.hex()[:16]})
        inputs = named({**before, "gradients": whole["gradients"]}, "gradients", "main_parameters", "optimizer")
        outputs = named(whole, "main_parameters", "parameters", "optimizer")
        if not self.faults.get("untraced"):
            event("optimizer", "", inputs, outputs, **{"class": "Adam", "file": "double/adam.py", "line": 3})
        event("end", "", {}, named(whole, "buffers"))
        header = {"schema": "validator/trace", "version": 1, "step": request.trace, "rank": self.rank,
                  "world_size": request.ranks}  # fmt: skip
        modules = [{"module": f"decoder.layers.{at}", "class": "Layer", "file": "double/layer.py", "line": at + 1}
                   for at in (0, 1)]  # fmt: skip
        lines = [header, *modules, *events, {"end": True, "events": len(events)}]
        request.trace_directory.mkdir(exist_ok=True)
        part = request.trace_file(self.rank).with_suffix(".part")
        part.write_text("".join(json.dumps(line) + "\n" for line in lines))
        if not self.faults.get("no_trace"):
            part.rename(request.trace_file(self.rank))

    def save(self, step: int) -> None:
        directory = Path(option(self.request.arguments, "--save")) / f"iter_{step:07d}"
        directory.mkdir(parents=True, exist_ok=True)
        content = {g: {n: c.hex() for n, c in leaves.items()} for g, leaves in self.state.items()}
        self.request.write_coverage(self.rank, self.faults.get("unsaved", []))
        part = directory / f"rank-{self.rank}.part"
        part.write_text(json.dumps(content))
        part.rename(directory / f"rank-{self.rank}.json")
        if self.faults.get("save_disturbs"):
            self.state["optimizer"]["step"] = mix("disturbed", self.state["optimizer"]["step"])
        if self.rank == 0 and not self.faults.get("no_tracker"):
            if "--async-save" in self.request.arguments and os.fork():
                return  # the writer below finishes while training goes on
            while len(list(directory.glob("rank-*.json"))) < self.request.ranks:
                time.sleep(0.005)
            tracker = directory.parent / "latest_checkpointed_iteration.txt"
            part = tracker.with_suffix(".part")  # whole or not at all: the kill may come at any time
            part.write_text(str(step))
            part.rename(tracker)
            if "--async-save" in self.request.arguments:
                os.setsid()
                time.sleep(600)  # a checkpoint writer that outlives its rank

    def restore(self, step: int) -> None:
        directory = Path(option(self.request.arguments, "--load")) / f"iter_{step:07d}"
        content = json.loads((directory / f"rank-{self.rank}.json").read_text())
        fresh = self.state
        self.state = {g: {n: bytes.fromhex(c) for n, c in leaves.items()} for g, leaves in content.items()}
        if self.faults.get("lost_rng"):
            self.state["rng"] = fresh["rng"]
        if self.faults.get("lost_optimizer"):
            self.state["optimizer"]["step"] = fresh["optimizer"]["step"]
        if self.faults.get("rank_rng") and self.rank:
            other = json.loads((directory / "rank-0.json").read_text())
            self.state["rng"]["expert-parallel-rng"] = bytes.fromhex(other["rng"]["expert-parallel-rng"])

    def misbehave(self, step: int) -> None:
        if self.fault("hang", step):
            time.sleep(600)
        if self.fault("crash", step):
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if self.fault("kill_rank", step):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault("full", step):
            with open("/dev/full", "w") as file:
                file.write("x")
                file.flush()

    def measure(self) -> None:
        """Write what a timed or profiled launch leaves, without spending the time."""
        request, faults = self.request, self.faults
        if request.measure == "profile" and faults.get("profile_crash"):
            raise RuntimeError("the profiler is not available")
        if faults.get("no_measurement"):
            return
        arm = "deterministic" if "--deterministic-mode" in request.arguments else "default"
        arm = "fill" if request.settings.get("fill_uninitialized_memory") is False else arm
        seconds = faults.get("step_seconds", {}).get(arm, 0.1) * (1 + float(request.switches.get("slowdown", 0.0)))
        draw = random.Random(request.scratch.name)  # noqa: S311 - no secret
        seconds *= 1 + faults.get("jitter", 0.0) * draw.uniform(-1, 1)
        if request.measure == "profile":
            phases = {"forward": 0.3, "backward": 0.5, "optimizer": 0.05, "communication": 0.1, "data": 0.02}
            step = {**{name: share * seconds for name, share in phases.items()}, "step": seconds}
            operators = {
                "aten::mm": {"seconds": 0.5 * seconds, "calls": 8},
                f"aten::{arm}": {"seconds": 0.01, "calls": 1},
            }
            content = {"rank": self.rank, "phases": [step] * 6, "operators": operators}
        else:
            steps = request.steps - (3 if faults.get("few_steps") else 1)
            content = {
                "rank": self.rank, "steps": [seconds * (1 + 0.01 * draw.random()) for _ in range(steps)],
                "tokens_per_step": 512, "peak_memory_bytes": 2**29 + self.rank, "window_seconds": seconds * steps,
                "busy_seconds": 2 * seconds * steps, "steal_seconds": 0.0, "own_seconds": seconds * steps,
                "load_average": 2.0, "torch": {"threads": 1, "deterministic_algorithms": arm != "default"},
                "gpu": faults.get("gpu"),
            }  # fmt: skip
        request.write_measurement(self.rank, content)

    def run(self) -> None:
        request = self.request
        if request.measure:
            self.measure()
            return
        restored = request.restore_step or 0
        if restored:
            self.restore(restored)
        self.fingerprint("setup", restored, {g: self.state[g] for g in PERSISTENT}, {})
        if restored and self.faults.get("cpu_draw"):
            self.state["rng"]["cpu"] = mix("draw", self.state["rng"]["cpu"])
        self.fingerprint("entry", restored, {g: self.state[g] for g in PERSISTENT}, {})
        interval = int(option(request.arguments, "--save-interval") or 0)
        whole: State = {}
        metrics: dict = {}
        for step in range((request.restore_step or 0) + 1, request.steps + 1):
            self.misbehave(step)
            time.sleep(self.faults.get("slow", 0.01))
            whole, metrics = self.train(step)
            self.fingerprint("step", step, whole, metrics)
            if interval and step % interval == 0:
                self.save(step)
            if self.fault("stops", step):
                break
        if self.writer and not self.faults.get("no_ending"):
            self.writer.close(self.ending(whole, metrics))
        if "--async-save" in request.arguments:
            time.sleep(0.3)

    def ending(self, whole: State, metrics: dict) -> dict:
        from validator.trajectory.known_answers import KNOWN_ANSWERS
        from validator.trajectory.leaves import leaf_digest

        answers = {
            key.name: "00" * 16 if self.faults.get("wrong_answers") else leaf_digest(key, content).hex()
            for key, content, *_ in KNOWN_ANSWERS
        }
        return {
            "known_answers": answers,
            "flips": self.flips(whole, metrics) if self.request.flips is not None else {},
            "coverage": {
                "parameters": 3, "buffers": 1, "optimizer": 3, "checkpoint": 7,
                "unmapped": self.faults.get("unmapped", []),
            },
            "layout": {"rank": self.rank, "tp": 0, "pp": 0, "dp": self.rank, "ep": 0},
        }  # fmt: skip

    def flips(self, whole: State, metrics: dict) -> dict:
        from validator.trajectory.metrics import Metric
        from validator.trajectory.record import metric_record, metric_table

        before = metric_record(metrics, metric_table(metrics)).digest.hex()
        after = metric_record({**metrics, "lm loss": Metric.of(0.0, "float32")}, metric_table(metrics)).digest.hex()
        found = {"metrics": {"leaf": "lm loss", "before": before, "after": after, "restored": before}}
        for group, contents in whole.items():
            if group == self.faults.get("skip_group"):
                continue
            leaf = list(contents)[self.request.flips % len(contents)]
            before = self.record_of(group, contents).digest.hex()
            flipped = {**contents, leaf: bytes([contents[leaf][0] ^ 1]) + contents[leaf][1:]}
            after = before if self.faults.get("deaf_flips") else self.record_of(group, flipped).digest.hex()
            restored = after if self.faults.get("stuck_flips") else before
            found[group] = {"leaf": leaf, "before": before, "after": after, "restored": restored}
        return found


def claims(request) -> dict:
    return {
        "python": "3.12.1",
        "packages": {"torch": "2.14.1", "megatron-core": "0.19.2"},
        "megatron": {"version": "0.19.2", "commit": None},
        "arguments": {"seed": request.seed, "train_iters": request.steps},
        "variables": {k: v for k, v in os.environ.items() if k.startswith(("ATEN_", "MKL_", "OMP_", "CUDA_VISIBLE_"))},
        "torch": {
            "cpu_capability": os.environ.get("ATEN_CPU_CAPABILITY", "default"),
            "threads": 1,
            "deterministic": True,
        },
        "workload_digest": "00" * 16,
    }


def launch(request_file: Path, ranks: int) -> int:
    """Play torchrun: one process a rank, each in a session of its own; the first failure ends all."""
    from validator.execute.request import LaunchRequest

    request = LaunchRequest.read(request_file)
    every = json.loads(Path(os.environ["DOUBLE"]).read_text()) if "DOUBLE" in os.environ else {}
    faults = {**every.get("*", {}), **every.get(request_file.parent.name, {})}
    assert ranks == request.ranks
    if "missing_package" in faults:
        print(f"ModuleNotFoundError: No module named '{faults['missing_package']}'", file=sys.stderr)
        return 1
    if "says" in faults:
        print(f"validator: {faults['says']}", file=sys.stderr)
        return 1
    claimed = claims(request)
    claimed["packages"] |= faults.get("packages", {})
    claimed |= faults.get("claims", {})
    request.claims_file.write_text(json.dumps(claimed))
    children = {}
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            os.setsid()
            code = 1
            try:
                if faults.get("strays"):
                    subprocess.Popen(["sleep", "600"], start_new_session=True)
                Rank(request, faults, rank).run()
                code = 0
            except OSError as error:
                print(f"OSError: [Errno {error.errno}] {os.strerror(error.errno or errno.EIO)}", file=sys.stderr)
            except Exception as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
            sys.stderr.flush()
            os._exit(code)
        children[child] = rank
    while children:
        child, status = os.wait()
        if child not in children:
            continue
        rank = children.pop(child)
        code = os.waitstatus_to_exitcode(status)
        if code:
            print(f"failed (exitcode: {code}) local_rank: {rank} (pid: {child})", file=sys.stderr)
            for other in children:
                os.kill(other, signal.SIGTERM)
            return 1
    return 0


def main(argv: list[str]) -> int:
    if argv[:2] == ["-m", "torch.distributed.run"]:
        return launch(Path(argv[-1]), int(argv[argv.index("--nproc-per-node") + 1]))
    return subprocess.run([sys.executable, *argv], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
