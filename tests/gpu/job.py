#!/usr/bin/env python3
"""A small training loop of torch.distributed, to be recorded by the profiler plugin.

    job.py RANKS STEPS

RANKS processes; more of them than GPUs share GPU 0, each as a host of its own, over sockets.  A
step multiplies matrices and sums eight gradients of 4 MB; it prints "step RANK SECONDS" (median) and what
each rank's sum must be is checked.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, ranks, steps, port):
    shared = torch.cuda.device_count() < ranks
    if shared:
        os.environ.update(NCCL_HOSTID=f"railgauge-rank-{rank}", NCCL_MULTI_RANK_GPU_ENABLE="1", NCCL_SOCKET_IFNAME="lo")
    torch.cuda.set_device(0 if shared else rank)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    gradients = [torch.empty(1 << 20, device="cuda") for _ in range(8)]
    took = []
    for _ in range(steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for g in gradients:
            g.fill_(rank + 1)
            a @ a
            dist.all_reduce(g)
        torch.cuda.synchronize()
        took.append(time.perf_counter() - begin)
    wrong = sum(int((g != ranks * (ranks + 1) / 2).sum()) for g in gradients)
    print(f"step {rank} {statistics.median(took):.6f}", flush=True)
    dist.destroy_process_group()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(work, args=(int(sys.argv[1]), int(sys.argv[2]), port), nprocs=int(sys.argv[1]))
