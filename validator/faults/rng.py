"""Random number generators that a resume or a step leaves in another state."""

from __future__ import annotations

import random
from typing import Any

from validator.faults.model import ROUTER_LOSS, Category, Fault, Place, Scenario

_RESUME = "https://github.com/NVIDIA/Megatron-LM/pull/6858"
_DRAWS = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/issues/5257"


def _generator(recorder: Any) -> Any:
    """A generator of the device that the launch computes on: one of another device has states of another size."""
    import torch

    return torch.Generator(device=recorder.request.device)


def _other_ranks_state(recorder: Any) -> None:
    from validator.faults.act import Scene
    from validator.workload import megatron_internals

    scene = Scene(recorder)

    def exchange(_: Any) -> None:
        named = megatron_internals.random_tracker_states().items()
        own = {name: megatron_internals.state_tensor(state) for name, state in named}
        everyone: list[Any] = megatron_internals.gather_objects(own)
        if scene.rank == scene.last_rank:
            megatron_internals.set_random_tracker_states(everyone[0])

    scene.after_restore(exchange)


def _tracker_lost(recorder: Any) -> None:
    from validator.faults.act import Scene
    from validator.workload import megatron_internals

    scene = Scene(recorder)
    before: dict[str, Any] = {}
    scene.replace(
        "megatron.training.training",
        "load_checkpoint",
        lambda load: (
            lambda *args, **kwargs: (
                before.update(megatron_internals.generator_states()["named"]),
                load(*args, **kwargs),
            )[1]
        ),
    )
    scene.after_restore(lambda _: megatron_internals.set_random_tracker_states(before))


def _python_lost(recorder: Any) -> None:
    from validator.faults.act import Scene

    Scene(recorder).after_restore(lambda _: random.seed(0))


def _numpy_lost(recorder: Any) -> None:
    import numpy

    from validator.faults.act import Scene

    Scene(recorder).after_restore(lambda _: numpy.random.seed(0))


def _cpu_lost(recorder: Any) -> None:
    import torch

    from validator.faults.act import Scene

    generator = torch.Generator().manual_seed(0)
    Scene(recorder).after_restore(lambda _: torch.set_rng_state(generator.get_state()))


def _device_lost(recorder: Any) -> None:
    import torch

    from validator.faults.act import Scene

    def lose(_: Any) -> None:
        torch.cuda.set_rng_state(_generator(recorder).manual_seed(0).get_state())

    Scene(recorder).after_restore(lose)


def _one_draw_more(recorder: Any) -> None:
    import torch

    from validator.faults.act import Scene

    def draw(forward: Any, *args: Any, **kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        torch.rand(1, device=output.device)
        return output

    Scene(recorder).forward_of("decoder.final_norm", draw)


def _tracker_draw(recorder: Any) -> None:
    import torch

    from validator.faults.act import Scene
    from validator.workload import megatron_internals

    scene = Scene(recorder)

    def draw() -> None:
        states = dict(megatron_internals.random_tracker_states())
        generator = _generator(recorder)
        generator.set_state(megatron_internals.state_tensor(states["model-parallel-rng"]))
        torch.rand(1, generator=generator, device=generator.device)
        states["model-parallel-rng"] = generator.get_state()
        megatron_internals.set_random_tracker_states(states)

    scene.after_step(draw)


def _private_generator(recorder: Any) -> None:
    import torch

    from validator.faults.act import Scene

    scene = Scene(recorder)

    def dropout(forward: Any, *args: Any, **kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        own = torch.Generator(device=output.device).manual_seed(scene.rank)
        keep = torch.rand(output.shape, generator=own, device=output.device) >= 0.1
        return output * keep / 0.9

    scene.forward_of("decoder.final_norm", dropout)


def _unseeded_generator(recorder: Any) -> None:
    import secrets

    import torch

    from validator.faults.act import Scene

    def noise(forward: Any, *args: Any, **kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        own = torch.Generator(device=output.device).manual_seed(secrets.randbits(63))
        return output + 1e-3 * torch.randn(output.shape, generator=own, device=output.device).to(output.dtype)

    Scene(recorder).forward_of("decoder.final_norm", noise)


def _leaking_fork(recorder: Any) -> None:
    import torch

    from validator.faults.act import Scene
    from validator.workload import megatron_internals

    def leak() -> None:
        named = megatron_internals.random_tracker_states()["model-parallel-rng"]
        torch.cuda.set_rng_state(megatron_internals.state_tensor(named))

    Scene(recorder).after_step(leak)


FAULTS = (
    Fault(
        "rng-of-another-rank",
        Category.RNG,
        "the last rank is restored with the named generators of rank 0",
        _RESUME,
        Scenario.RESTORE,
        Place("setup:3", "rng", "model-parallel-rng"),
        _other_ranks_state,
        needs=("--tensor-model-parallel-size",),
    ),
    Fault(
        "rng-tracker-lost",
        Category.RNG,
        "Megatron's named generators start anew after a restore",
        _RESUME,
        Scenario.RESTORE,
        Place("setup:3", "rng", "model-parallel-rng"),
        _tracker_lost,
        quick=True,
    ),
    Fault(
        "rng-python-lost",
        Category.RNG,
        "Python's generator is not restored",
        _RESUME,
        Scenario.RESTORE,
        Place("setup:3", "rng", "python"),
        _python_lost,
    ),
    Fault(
        "rng-numpy-lost",
        Category.RNG,
        "NumPy's generator is not restored",
        _RESUME,
        Scenario.RESTORE,
        Place("setup:3", "rng", "numpy"),
        _numpy_lost,
    ),
    Fault(
        "rng-cpu-lost",
        Category.RNG,
        "PyTorch's CPU generator is not restored",
        _RESUME,
        Scenario.RESTORE,
        Place("setup:3", "rng", "cpu"),
        _cpu_lost,
    ),
    Fault(
        "rng-device-lost",
        Category.RNG,
        "the device's default generator is not restored",
        _RESUME,
        Scenario.RESTORE,
        Place("setup:3", "rng", "device"),
        _device_lost,
    ),
    Fault(
        "rng-one-draw-more",
        Category.RNG,
        "one module draws a random number more from the device's generator in step 3",
        _DRAWS,
        Scenario.RUN,
        Place("step:3", "rng", "device"),
        _one_draw_more,
    ),
    Fault(
        "rng-tracker-one-draw-more",
        Category.RNG,
        "a library draws once from a named generator after step 3, and no loss of that step moves",
        _DRAWS,
        Scenario.RUN,
        Place("step:3", "rng", "model-parallel-rng"),
        _tracker_draw,
    ),
    Fault(
        "rng-private-generator",
        Category.RNG,
        "dropout of one module draws from a generator of its own, which no checkpoint knows",
        _DRAWS,
        Scenario.RUN,
        Place("step:3", "metrics", ROUTER_LOSS),
        _private_generator,
        module="decoder.final_norm",
    ),
    Fault(
        "rng-unseeded-generator",
        Category.RNG,
        "one module draws from a generator that is seeded anew in every launch",
        _DRAWS,
        Scenario.REPEAT,
        Place("step:3", "metrics", ROUTER_LOSS),
        _unseeded_generator,
        module="decoder.final_norm",
    ),
    Fault(
        "rng-leaking-fork",
        Category.RNG,
        "a named generator's state stays in the default one after step 3",
        _DRAWS,
        Scenario.RUN,
        Place("step:3", "rng", "device"),
        _leaking_fork,
    ),
)
