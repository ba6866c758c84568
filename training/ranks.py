"""Processes that do one job together: the ranks that torchrun starts, one alone without it.

Every rank runs the same program. They meet in the calls below, which all of them have to make in
the same order; the first one speaks and writes files. Processes talk by gloo, on CUDA devices by
nccl.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

PATIENCE = timedelta(hours=2)  # of a rank that waits for another, while that one compiles or plays


def size() -> int:
    """How many there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Which one this is, from 0."""
    return int(os.environ.get("RANK", "0"))


def is_first() -> bool:
    """Whether this one speaks and writes."""
    return rank() == 0


def join(device: str = "cpu") -> None:
    """Meet the others, if there are any and they have not met; every other call does it too.

    Args:
        device: where this job learns. On "cuda" each rank of a machine takes a device of its own.
    """
    if size() == 1:
        return
    import torch
    from torch import distributed

    if distributed.is_initialized():
        return
    on_cuda = device.startswith("cuda")
    if on_cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("cpu:gloo,cuda:nccl" if on_cuda else "gloo", timeout=PATIENCE)
    atexit.register(_leave)


def _leave() -> None:
    from torch import distributed

    with contextlib.suppress(Exception):  # another one may have died; this one ends as well
        distributed.destroy_process_group()


def gather(mine: Any) -> list[Any]:
    """What every rank brings, by rank."""
    if size() == 1:
        return [mine]
    from torch import distributed

    join()
    found: list[Any] = [None] * size()
    distributed.all_gather_object(found, mine)
    return found


def share(count: int) -> slice:
    """This rank's stretch of so many things: all of it where there is one rank."""
    return slice(count * rank() // size(), count * (rank() + 1) // size())


def total(mine: torch.Tensor) -> torch.Tensor:
    """The sum of what every rank brings, of one shape; where there is one rank that is its own."""
    if size() == 1:
        return mine
    from torch import distributed

    whole = mine.clone()
    distributed.all_reduce(whole)
    return whole


def average_gradients(parameters: list[torch.nn.Parameter], count: int) -> None:
    """Replace each gradient, which is a sum over this rank's samples, by the mean over all ranks'.

    Args:
        parameters: in the same order everywhere; one without a gradient counts as zero.
        count: this rank's samples; some rank has one.
    """
    import torch
    from torch import distributed

    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    whole = torch.cat([*(part.reshape(-1) for part in parts), parts[0].new_tensor([count])])
    distributed.all_reduce(whole)
    whole /= whole[-1].clone()
    at = 0
    for parameter in parameters:
        n = parameter.numel()
        parameter.grad = whole[at : at + n].reshape(parameter.shape).clone()
        at += n
