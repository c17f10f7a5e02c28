"""The CPU in the role of the CUDA device, installed in a process of its own."""

from __future__ import annotations

import importlib

from tests.workload.isolated import isolated


def scenario() -> None:
    import torch

    from validator.workload import cpu

    plain = torch.tensor([1.0, 2.0])
    cpu.install()

    # A tensor "on CUDA" is the CPU's own.
    assert plain.cuda() is plain
    assert plain.cuda(non_blocking=True) is plain
    assert plain.pin_memory() is plain
    assert plain.to("cuda") is plain
    assert plain.to(torch.device("cuda", 1)) is plain
    assert plain.to(device="cuda", dtype=torch.float64).dtype == torch.float64

    # Every way to name the device.
    for device in ("cuda", "cuda:0", torch.device("cuda"), torch.device("cuda:1"), 0, torch.cuda.current_device()):
        assert torch.zeros(2, device=device).device.type == "cpu"
    assert torch.tensor([1], device="cuda").device.type == "cpu"
    assert torch.empty(3, device="meta").device.type == "meta"  # other devices stay what they are

    # Megatron's distributed optimizer asks for types by these names.
    names = {
        torch.float32: "torch.cuda.FloatTensor",
        torch.bfloat16: "torch.cuda.BFloat16Tensor",
        torch.float16: "torch.cuda.HalfTensor",
        torch.int64: "torch.cuda.LongTensor",
    }
    for dtype, name in names.items():
        assert torch.zeros(1, dtype=dtype).type() == name
    assert plain.type(torch.float64).dtype == torch.float64  # a conversion is no question

    # From a device to the host is always a copy: what is saved must not change with what trains on.
    for copy in (plain.cpu(), plain.to("cpu"), plain.to(torch.device("cpu")), plain.to(device="cpu")):
        assert copy is not plain
        copy[0] = 7.0
        assert plain[0] == 1.0

    assert torch.cuda.current_device() == 1
    assert torch.cuda.device_count() == 2
    torch.cuda.set_device(1)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
    assert event.query()
    assert torch.cuda.current_stream().query()
    assert torch.cuda.get_device_properties(0).major >= 8
    assert torch.cuda.max_memory_allocated() == 0


def exchange() -> None:
    """Megatron hands the split sizes over as tensors, which gloo does not take."""
    import tempfile

    import torch

    from validator.workload import cpu

    cpu.install()
    with tempfile.TemporaryDirectory() as folder:
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        sent, received = torch.arange(5.0), torch.empty(5)
        sizes = torch.tensor([5])
        torch.distributed.all_to_all_single(received, sent, sizes, sizes)
        assert torch.equal(received, sent)
        torch.distributed.destroy_process_group()


def imports() -> None:
    from validator.workload import cpu

    cpu.install()
    from validator.workload.cpu import state_space

    norm = importlib.import_module("mamba_ssm.ops.triton.layernorm_gated")
    scans = importlib.import_module("mamba_ssm.ops.triton.ssd_combined")
    assert norm.RMSNorm is state_space.GatedRMSNorm
    assert scans.mamba_chunk_scan_combined is state_space.chunk_scan
    assert scans.mamba_split_conv1d_scan_combined is state_space.split_conv_scan


def test_the_cpu_answers_as_the_device() -> None:
    isolated(scenario, variables={"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"})


def test_all_to_all_takes_split_sizes_as_tensors() -> None:
    isolated(exchange, variables={"GLOO_SOCKET_IFNAME": "lo"})


def test_megatron_finds_the_scan_under_the_names_that_it_imports() -> None:
    isolated(imports)
