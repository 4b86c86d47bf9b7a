"""Mistakes with shapes, types, devices, gradients and memory."""

# mypy: ignore-errors

from faults import BUG, fault

SHAPE = "usage.shape-mismatch"
DTYPE = "usage.dtype-mismatch"


@fault(SHAPE, "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x20 and 16x32)")
def matmul_shapes(job):
    import torch

    return job.net(torch.zeros(8, 20))


@fault(SHAPE, "RuntimeError: shape '[4, 9]' is invalid for input of size 32")
def view_shape(job):
    import torch

    return torch.zeros(32).view(4, 9)


@fault(SHAPE, "RuntimeError: Sizes of tensors must match except in dimension 0")
def cat_sizes(job):
    import torch

    return torch.cat([torch.zeros(2, 3), torch.zeros(2, 4)])


@fault(SHAPE, "RuntimeError: The size of tensor a (5) must match the size of tensor b (7)")
def add_sizes(job):
    import torch

    return torch.zeros(5) + torch.zeros(7)


@fault(
    DTYPE,
    ("RuntimeError: mat1 and mat2 must have the same dtype", "RuntimeError: expected m1 and m2 to have the same dtype"),
)
def linear_dtype(job):
    import torch

    return job.net(torch.zeros(2, 16, dtype=torch.float64))


@fault(
    DTYPE,
    (
        "RuntimeError: expected scalar type Long but found Float",
        "expected target dtype to be Long or Byte",
    ),
)
def target_dtype(job):
    import torch

    return torch.nn.functional.nll_loss(torch.zeros(4, 10), torch.zeros(4))


@fault("usage.index-out-of-range", "IndexError: index out of range in self")
def embedding_index(job):
    import torch

    return torch.nn.Embedding(100, 4)(torch.tensor([100]))


@fault("usage.index-out-of-range", "IndexError: Target 10 is out of bounds.")
def class_index(job):
    import torch

    return torch.nn.functional.cross_entropy(torch.zeros(2, 10), torch.tensor([1, 10]))


@fault(("usage.index-out-of-range", BUG), "IndexError: index 9 is out of bounds for dimension 0 with size 4")
def tensor_index(job):
    import torch

    return torch.zeros(4)[9]


@fault("usage.device-mismatch", "meta", ranks="all")
def meta_device(job):
    import torch

    layer = torch.nn.Linear(16, 4, device="meta")
    return layer(torch.zeros(2, 16)).sum().item()


@fault(("usage.device-mismatch", BUG), "NotImplementedError: Cannot copy out of meta tensor; no data!", ranks="all")
def meta_moved(job):
    import torch

    return torch.nn.Linear(4, 4, device="meta").to("cpu")


@fault("cuda.no-device", ("Found no NVIDIA driver", "Torch not compiled with CUDA enabled"), ranks="all", at="group")
def cuda_absent(job):
    import torch

    return torch.zeros(4, device=f"cuda:{job.rank}")


@fault("autograd.inplace-version", "has been modified by an inplace operation")
def inplace_version(job):
    import torch

    weight = torch.ones(4, requires_grad=True)
    out = torch.sigmoid(weight)
    out += 1
    out.sum().backward()


@fault(
    ("autograd.inplace-version", "autograd.view-inplace", BUG),
    "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation",
)
def inplace_leaf(job):
    import torch

    weight = torch.ones(4, requires_grad=True)
    weight += 1


@fault("autograd.view-inplace", "is a view and is being modified inplace")
def inplace_view(job):
    import torch

    source = torch.ones(4, requires_grad=True) * 2
    first, _ = source.split(2)
    first.mul_(2)


@fault("autograd.backward-twice", "RuntimeError: Trying to backward through the graph a second time")
def backward_twice(job):
    import torch

    loss = torch.ones(4, requires_grad=True).pow(2).sum()
    loss.backward()
    loss.backward()


@fault("autograd.no-grad-fn", "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn")
def no_grad_fn(job):
    import torch

    torch.zeros(4).sum().backward()


@fault(("usage.loss-reduction", SHAPE), "RuntimeError: grad can be implicitly created only for scalar outputs")
def loss_vector(job):
    import torch

    torch.ones(4, requires_grad=True).mul(2).backward()


@fault("numerics.nan-loss", "returned nan values in its 0th output", ranks="all")
def nan_anomaly(job):
    import torch

    weight = torch.zeros(4, requires_grad=True)
    with torch.autograd.detect_anomaly():
        (torch.sqrt(weight) * 0).sum().backward()


@fault("numerics.nan-loss", "ValueError: loss is nan at step 3")
def nan_found(job):
    raise ValueError(f"loss is {float('nan')} at step {job.step}")


@fault((BUG, "usage.detach"), "RuntimeError: Can't call numpy() on Tensor that requires grad")
def numpy_of_grad(job):
    return job.net.head.weight.numpy()


@fault(
    (BUG, SHAPE, "usage.loss-reduction", "usage.value-range"),
    "RuntimeError: a Tensor with 8 elements cannot be converted to Scalar",
)
def item_of_many(job):
    import torch

    return torch.zeros(8).item()


@fault((BUG, SHAPE), "RuntimeError: Boolean value of Tensor with more than one value is ambiguous")
def truth_of_many(job):
    import torch

    return bool(torch.zeros(8) > 0)


@fault("usage.batchnorm-single-value", "ValueError: Expected more than 1 value per channel when training")
def batchnorm_single(job):
    import torch

    return torch.nn.BatchNorm1d(4)(torch.zeros(1, 4))


@fault(
    (BUG, "checkpoint.amp-state", "numerics.amp-overflow", "numerics.loss-scale", "usage.config"),
    "RuntimeError: unscale_() has already been called on this optimizer since the last update()",
    since="2.4",
)
def unscaled_twice(job):
    import torch

    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(job.net(torch.zeros(2, 16)).sum()).backward()
    scaler.unscale_(job.optimizer)
    scaler.unscale_(job.optimizer)


@fault(
    (DTYPE, BUG),
    (
        "RuntimeError: value cannot be converted to type at::Half without overflow",
        "RuntimeError: value cannot be converted to type c10::Half without overflow",
    ),
)
def half_overflow(job):
    import torch

    return torch.zeros(4, dtype=torch.half).masked_fill_(torch.tensor(True), -1e9)


@fault("compile.dynamo", "torch._dynamo.exc.Unsupported: ", ranks="all", since="2.4")
def compile_break(job):
    import torch

    @torch.compile(fullgraph=True, backend="eager")
    def step(x):
        torch._dynamo.graph_break()
        return x + 1

    step(torch.zeros(4))


@fault(("compile.dynamo", "usage.config"), "InvalidBackend: Invalid backend: 'tensor_rt'", ranks="all")
def compile_backend(job):
    import torch

    torch.compile(job.net, backend="tensor_rt")(torch.zeros(2, 16))


@fault("process.host-oom", "DefaultCPUAllocator: ", retry=("no", "once"))
def memory_tensor(job):
    import torch

    return torch.empty(1 << 48)


@fault("process.host-oom", "Unable to allocate ", retry=("no", "once"))
def memory_numpy(job):
    import numpy

    return numpy.zeros((1 << 22, 1 << 22))


@fault("process.host-oom", "MemoryError", retry=("no", "once"))
def memory_python(job):
    return [0] * (1 << 50)


@fault("numerics.deterministic", "does not have a deterministic implementation")
def deterministic(job):
    import torch

    torch.use_deterministic_algorithms(True)
    torch.zeros(4).put_(torch.tensor([0]), torch.tensor([1.0]))


@fault(("usage.value-range", BUG, "numerics.nan-loss"), "The diagonal element 1 is zero")
def singular(job):
    import torch

    return torch.linalg.inv(torch.zeros(3, 3))


@fault(("usage.value-range", BUG), "RuntimeError: all elements of input should be between 0 and 1")
def bce_range(job):
    import torch

    return torch.nn.functional.binary_cross_entropy(torch.tensor([1.7]), torch.tensor([1.0]))


@fault(("usage.value-range", BUG, "numerics.nan-loss"), "ValueError: Expected parameter ")
def distribution_range(job):
    import torch

    return torch.distributions.Normal(torch.tensor([float("nan")]), torch.tensor([1.0]))


@fault((BUG, "usage.config"), "ValueError: optimizer got an empty parameter list", at="group", ranks="all")
def optimizer_empty(job):
    import torch

    return torch.optim.SGD([], lr=0.1)


@fault(("usage.config", BUG, "usage.value-range"), "ValueError: Invalid learning rate: -0.1", at="group", ranks="all")
def optimizer_rate(job):
    import torch

    return torch.optim.Adam([torch.zeros(2, requires_grad=True)], lr=-0.1)


@fault((BUG, "usage.zero-dim-index"), "IndexError: invalid index of a 0-dim tensor")
def zero_dim(job):
    import torch

    return torch.tensor(1.5)[0]
