"""Tensors that have others inside, as DTensor has what is a rank's own."""


def is_wrapper(types):
    """Whether tensors of these types have others inside, whose ops are the step's: DTensor."""
    return any(hasattr(t, "__tensor_flatten__") for t in types)


def local(tensor):
    """What this rank has of a tensor that is spread over ranks (DTensor); else the tensor."""
    return getattr(tensor, "_local_tensor", tensor)


def is_served(model, tensor):
    """False for a tensor that is spread over ranks otherwise than fully_shard() does."""
    mesh = getattr(tensor, "device_mesh", None)
    if mesh is None:
        return True
    from torch.distributed.fsdp import FSDPModule  # takes long; whoever has a mesh has it already
    return mesh.ndim == 1 and any(isinstance(m, FSDPModule) for m in model.modules())


def with_local(tensor, part):
    """The same tensor, spread as it is, with another part of this rank's."""
    if not hasattr(tensor, "_local_tensor"):
        return part
    return type(tensor).from_local(part, tensor.device_mesh, tensor.placements, run_check=False,
                                   shape=tensor.shape, stride=tensor.stride())
