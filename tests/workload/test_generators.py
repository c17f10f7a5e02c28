"""Two generators on one CPU: in a process of its own, since installing them binds PyTorch's functions."""

from __future__ import annotations

import torch

from tests.workload.isolated import isolated


def draws_of(seed: int, count: int = 4) -> torch.Tensor:
    """What a generator of this seed draws, found without PyTorch's default generator."""
    return torch.rand(count, generator=torch.Generator().manual_seed(seed))


def seeds_reach_the_state_that_they_mean() -> None:
    from validator.workload.cpu import generators

    generators.install()
    torch.manual_seed(1)  # as on a GPU: both
    assert torch.equal(torch.get_rng_state(), torch.cuda.get_rng_state())
    torch.cuda.manual_seed(2)
    assert torch.equal(torch.rand(4), draws_of(1))
    with generators.on_device():
        assert torch.equal(torch.rand(4), draws_of(2))
        torch.cuda.manual_seed_all(3)
        assert torch.equal(torch.rand(4), draws_of(3))
        torch.manual_seed(4)
        assert torch.equal(torch.rand(4), draws_of(4))
    assert torch.equal(torch.rand(4), draws_of(4))


def a_draw_on_the_device_leaves_the_cpus_state_alone() -> None:
    from validator.workload.cpu import generators

    generators.install()
    torch.manual_seed(1)
    torch.cuda.manual_seed(2)
    cpu, device = torch.get_rng_state(), torch.cuda.get_rng_state()
    with generators.on_device():
        torch.rand(100)
        assert torch.equal(torch.get_rng_state(), cpu)
        assert not torch.equal(torch.cuda.get_rng_state(), device)
    assert torch.equal(torch.get_rng_state(), cpu)
    drawn_from = torch.cuda.get_rng_state()
    torch.rand(100)
    assert torch.equal(torch.cuda.get_rng_state(), drawn_from)
    assert not torch.equal(torch.get_rng_state(), cpu)


def blocks_nest_and_end_by_exceptions_too() -> None:
    from validator.workload.cpu import generators

    generators.install()
    torch.manual_seed(1)
    torch.cuda.manual_seed(2)
    expected_cpu, expected_device = draws_of(1), draws_of(2)
    with generators.on_device():
        first = torch.rand(1)
        with generators.on_device():
            second = torch.rand(1)
        third = torch.rand(2)  # the inner block's end has not swapped the outer one's generator away
    assert torch.equal(torch.cat([first, second, third]), expected_device)
    try:
        with generators.on_device():
            raise LookupError
    except LookupError:
        pass
    assert torch.equal(torch.rand(4), expected_cpu)


def each_state_is_set_and_read_from_both_sides() -> None:
    from validator.workload.cpu import generators

    generators.install()
    for inside in (False, True):
        torch.set_rng_state(torch.Generator().manual_seed(5).get_state())
        torch.cuda.set_rng_state(torch.Generator().manual_seed(6).get_state())
        if inside:
            with generators.on_device():
                cpu, device = torch.get_rng_state(), torch.cuda.get_rng_state()
                torch.set_rng_state(torch.Generator().manual_seed(7).get_state())
                torch.cuda.set_rng_state(torch.Generator().manual_seed(8).get_state(), 0)
                assert torch.equal(torch.rand(4), draws_of(8))
            assert torch.equal(torch.rand(4), draws_of(7))
        else:
            cpu, device = torch.get_rng_state(), torch.cuda.get_rng_state()
        assert torch.equal(cpu, torch.Generator().manual_seed(5).get_state())
        assert torch.equal(device, torch.Generator().manual_seed(6).get_state())


def a_state_that_was_read_is_a_copy() -> None:
    from validator.workload.cpu import generators

    generators.install()
    torch.manual_seed(1)
    device = torch.cuda.get_rng_state()
    device.zero_()
    assert not torch.equal(torch.cuda.get_rng_state(), device)
    given = torch.Generator().manual_seed(9).get_state()
    torch.cuda.set_rng_state(given)
    given.zero_()
    assert torch.equal(torch.cuda.get_rng_state(), torch.Generator().manual_seed(9).get_state())


def all_scenarios() -> None:
    seeds_reach_the_state_that_they_mean()
    a_draw_on_the_device_leaves_the_cpus_state_alone()
    blocks_nest_and_end_by_exceptions_too()
    each_state_is_set_and_read_from_both_sides()
    a_state_that_was_read_is_a_copy()


def test_the_cpu_and_the_device_have_a_generator_each() -> None:
    isolated(all_scenarios)
