"""Checkpoints that hold something else than the state of their step."""

from __future__ import annotations

from typing import Any

from validator.faults.model import STEP, Category, Fault, Place, Scenario

_STALE = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/issues/3267"
_LIVE = "https://github.com/pytorch/pytorch/issues/144657"
_TORN = "https://github.com/NVIDIA/nvidia-resiliency-ext/pull/376"


def _held_tensors(kinds: tuple[str, ...], names: str = "*", ranks: Any = None) -> Any:
    """Save some tensors as they were a step earlier: put in place while the save reads, and taken out again."""

    def install(recorder: Any) -> None:
        from validator.faults.act import Scene

        scene = Scene(recorder)
        held: dict[tuple[str, str], Any] = {}

        def tensors() -> Any:
            for name, shard in scene.shards(names):
                for kind in kinds:
                    tensor = shard.main if kind == "main" else shard.state.get(kind)
                    if tensor is not None:
                        yield (name, kind), tensor

        def hold() -> None:
            held.update({key: tensor.clone() for key, tensor in tensors()})

        def save_held(save: Any) -> Any:
            def saved(*args: Any, **kwargs: Any) -> Any:
                if ranks is not None and scene.rank not in ranks(scene):
                    return save(*args, **kwargs)
                now = {key: tensor.clone() for key, tensor in tensors()}
                for key, tensor in tensors():
                    tensor.copy_(held[key])
                result = save(*args, **kwargs)
                for key, tensor in tensors():
                    tensor.copy_(now[key])
                return result

            return saved

        scene.after_step(hold, step=STEP - 1)
        scene.replace("megatron.training.training", "save_checkpoint", save_held)

    return install


def _saved_one_step_late(recorder: Any) -> None:
    """Write the save of step 3 when step 4 has changed the tensors; counters and generators are those of step 3."""
    import copy

    from validator.faults.act import Scene
    from validator.workload import megatron_internals

    scene = Scene(recorder)
    asked: dict[str, Any] = {}
    numbers = ("consumed_train_samples", "iteration")

    def later(save: Any) -> Any:
        def asked_to_save(
            iteration: int, model: Any, optimizer: Any, scheduler: Any, *args: Any, **kwargs: Any
        ) -> None:
            state = scene.state
            asked.update(
                call=lambda: save(iteration, model, optimizer, scheduler, *args, **kwargs),
                numbers={name: getattr(state.args, name) for name in numbers},
                scheduler=copy.deepcopy(scheduler.__dict__ | {"optimizer": None}),
                generators=megatron_internals.generator_states(),
            )

        return asked_to_save

    def write() -> None:
        state = scene.state
        now = {name: getattr(state.args, name) for name in numbers}
        steps, generators = state.scheduler.num_steps, megatron_internals.generator_states()
        for name, value in asked["numbers"].items():
            setattr(state.args, name, value)
        state.scheduler.num_steps = asked["scheduler"]["num_steps"]
        megatron_internals.set_generator_states(asked["generators"])
        asked["call"]()
        megatron_internals.set_generator_states(generators)
        state.scheduler.num_steps = steps
        for name, value in now.items():
            setattr(state.args, name, value)

    scene.replace("megatron.training.training", "save_checkpoint", later)
    scene.after_step(write, step=STEP + 1)


def _labelled_too_late(recorder: Any) -> None:
    """Write the state of step 2 under the name of step 3."""
    from validator.faults.act import Scene

    scene = Scene(recorder)
    call: dict[str, Any] = {}

    def early(save: Any) -> Any:
        call["save"] = save
        return lambda *args, **kwargs: None

    def write() -> None:
        args = scene.state.args
        call["save"](
            STEP, call["model"], call["optimizer"], call["scheduler"], args.num_floating_point_operations_so_far
        )

    def remember(model: Any, optimizer: Any, scheduler: Any, _: Any) -> None:
        call.update(model=model, optimizer=optimizer, scheduler=scheduler)

    from validator.workload import megatron_internals

    megatron_internals.observe_training(megatron_internals.Hooks(on_setup=remember))
    scene.replace("megatron.training.training", "save_checkpoint", early)
    scene.after_step(write, step=STEP - 1)


def _tensor_skipped(recorder: Any) -> None:
    """After a restore one tensor is what it was before: the checkpoint has none, and nobody insists."""
    from validator.faults.act import Scene
    from validator.workload import megatron_internals

    scene = Scene(recorder)
    before: dict[str, Any] = {}

    def remember(load: Any) -> Any:
        def loaded(model: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            for shard in megatron_internals.owned_shards(optimizer):
                before["main"] = shard.main.clone()
                break
            return load(model, optimizer, *args, **kwargs)

        return loaded

    def put_back(state: Any) -> None:
        for _, shard in state.shards():
            shard.main.copy_(before["main"])
            break

    scene.after_restore(put_back)
    scene.replace("megatron.training.training", "load_checkpoint", remember)


def _last_rank(scene: Any) -> tuple[int, ...]:
    return (scene.last_rank,)


FAULTS = (
    Fault(
        "save-of-old-tensors",
        Category.SAVING,
        "the save writes from a buffer that still holds the tensors of the save before",
        _STALE,
        Scenario.SAVE,
        Place("setup:3", "optimizer", "output_layer.weight/exp_avg"),
        _held_tensors(("main", "exp_avg", "exp_avg_sq")),
        quick=True,
    ),
    Fault(
        "save-of-one-old-shard",
        Category.SAVING,
        "one rank's shard of one moment is from another step",
        _TORN,
        Scenario.SAVE,
        Place("setup:3", "optimizer", "*.input_layernorm.weight/exp_avg_sq"),
        _held_tensors(("exp_avg_sq",), "decoder.layers.3.input_layernorm.weight"),
    ),
    Fault(
        "save-of-old-main-parameters",
        Category.SAVING,
        "the last rank's main parameters are from another step",
        _TORN,
        Scenario.SAVE,
        Place("setup:3", "main_parameters", "*"),
        _held_tensors(("main",), "*", _last_rank),
    ),
    Fault(
        "save-reads-live-tensors",
        Category.SAVING,
        "the save reads its tensors when the next step has already changed them",
        _LIVE,
        Scenario.SAVE,
        Place("setup:3", "optimizer", "output_layer.weight/exp_avg"),
        _saved_one_step_late,
    ),
    Fault(
        "asynchronous-save-of-old-tensors",
        Category.SAVING,
        "an asynchronous save is given the tensors of another step",
        _LIVE,
        Scenario.SAVE,
        Place("setup:3", "optimizer", "output_layer.weight/exp_avg"),
        _held_tensors(("main", "exp_avg", "exp_avg_sq")),
        mode="asynchronous",
    ),
    Fault(
        "save-under-a-later-step",
        Category.SAVING,
        "the checkpoint that says step 3 is that of step 2",
        _STALE,
        Scenario.SAVE,
        Place("setup:3", "data_position", "consumed_train_samples"),
        _labelled_too_late,
    ),
    Fault(
        "restore-skips-a-tensor",
        Category.SAVING,
        "one tensor is missing in the checkpoint, and the restore says nothing",
        "https://github.com/flagos-ai/FlagScale/pull/412",
        Scenario.RESTORE,
        Place("setup:3", "main_parameters", "output_layer.weight"),
        _tensor_skipped,
    ),
)
