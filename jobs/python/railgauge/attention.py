"""Measure the attention core of this GPU as PyTorch runs it, for `railgauge-probe probe --compute`.

    attention.py DEVICE TOKENSxHEADSxSIZE[,...]

Prints a line for the forward and one for the backward pass of each shape: kind, tokens, heads, head size,
FLOP/s (median, and the interval of the middle half), number of samples, and the kernel's library.  A causal
core of s tokens and n heads of d has 2 s s n d FLOPs forward, and 2.5 times as many backward, because the
scores are computed again (Dao 2023, FlashAttention-2, 3.1.2)."""
import os
import statistics
import sys

# Modules of this folder must not stand in for those that PyTorch imports.
sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention
except ImportError as why:
    sys.exit(f"PyTorch: {why}")

WARMUP, SAMPLES = 3, 15
# The libraries that a job may use: cuDNN, and the FlashAttention that comes with PyTorch.
LIBRARIES = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "FlashAttention": SDPBackend.FLASH_ATTENTION}


def seconds(run):
    """Return times of `run` on the GPU, without the first few."""
    times = []
    for i in range(WARMUP + SAMPLES):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        if i >= WARMUP:
            times.append(begin.elapsed_time(end) / 1e3)
    return times


def measure(tokens, heads, size, backend):
    """Return times of the forward and of the backward pass."""
    q, k, v = (torch.randn(1, heads, tokens, size, device="cuda", dtype=torch.bfloat16, requires_grad=True)
               for _ in range(3))
    with sdpa_kernel(backend):
        forward = seconds(lambda: scaled_dot_product_attention(q, k, v, is_causal=True))
        out = scaled_dot_product_attention(q, k, v, is_causal=True)
        gradient = torch.randn_like(out)
        backward = seconds(lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True))
    return forward, backward


def show(kind, shape, flops, times, library):
    low, middle, high = statistics.quantiles(times, n=4)
    print(kind, *shape, f"{flops / middle:.9g} {flops / high:.9g} {flops / low:.9g}", len(times),
          f"{library} by PyTorch {torch.__version__}")


def main(device, shapes):
    torch.cuda.set_device(int(device))
    for shape in ([int(n) for n in word.split("x")] for word in shapes.split(",")):
        tokens, heads, size = shape
        found = {}
        for library, backend in LIBRARIES.items():
            try:
                found[library] = measure(tokens, heads, size, backend)
            except RuntimeError:  # no such kernel for this shape or GPU, or no memory left
                continue
        if not found:
            continue
        library = min(found, key=lambda name: sum(map(statistics.median, found[name])))
        flops = 2.0 * tokens * tokens * heads * size
        show("attention", shape, flops, found[library][0], library)
        show("attention_backward", shape, 2.5 * flops, found[library][1], library)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
