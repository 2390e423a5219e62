"""Collectives of "sim" between processes, as backend "simccl": the stream that is current waits for gloo's
on the host, as NCCL's do for their own stream."""

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend, _create_work_from_future

import simgpu


def _done(value):
    future = torch.futures.Future()
    future.set_result(value)
    return _create_work_from_future(future)


class Collectives(Backend):
    """What DistributedDataParallel and gathered objects need."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._gloo = dist.ProcessGroupGloo(dist.PrefixStore("simccl", store), rank, size, timeout)

    def getBackendName(self):
        return "simccl"

    def _on_host(self, tensors, work):
        """Calls work(copies) and waits; the copies go back to the tensors."""
        with torch.no_grad():
            copies = [t.cpu() for t in tensors]
            work(copies).wait()
            for tensor, copy in zip(tensors, copies):
                tensor.copy_(copy)
        return _done(tensors)

    def allreduce(self, tensors, opts=None):
        return self._on_host(tensors, lambda copies: self._gloo.allreduce(copies, opts))

    def broadcast(self, tensors, opts=None):
        return self._on_host(tensors, lambda copies: self._gloo.broadcast(copies, opts))

    def allgather(self, outputs, inputs, opts=None):
        copies = [[t.cpu() for t in each] for each in outputs]
        self._gloo.allgather(copies, [t.cpu() for t in inputs], opts).wait()
        for each, those in zip(outputs, copies):
            for tensor, copy in zip(each, those):
                tensor.copy_(copy)
        return _done(outputs)

    def barrier(self, opts=None):
        simgpu.synchronize()
        self._gloo.barrier().wait()
        return _done(None)


dist.Backend.register_backend("simccl", Collectives, devices=["sim"])
