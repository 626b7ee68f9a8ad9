"""The peer of ops.star: the same operations in PyTorch, driven by main.go through standard input and output.

Commands, one a line: "prepare NAME", answered with "ok", and "run REPEATS", answered with the seconds it took. The
first line says which version speaks, with how many threads.
"""

import math
import sys
import time

import torch
import torch.nn.functional as F

M = 1 << 20


def pointwise(size, fn):
    x, y = torch.randn(size), torch.randn(size)
    return lambda: fn(x, y)


def matmul(size):
    a, b = torch.randn(size, size), torch.randn(size, size)
    return lambda: a @ b


def softmax():
    x = torch.randn(512, 4096)
    return lambda: torch.softmax(x, -1)


def layer_norm():
    x, w, b = torch.randn(512, 4096), torch.randn(4096), torch.randn(4096)
    return lambda: F.layer_norm(x, (4096,), w, b)


def attention():
    q, k, v = (torch.randn(8, 512, 64) for _ in range(3))
    return lambda: torch.softmax(q @ k.transpose(1, 2) / math.sqrt(64), -1) @ v


def conv():
    x, w = torch.randn(8, 64, 56, 56), torch.randn(64, 64, 3, 3)
    return lambda: F.conv2d(x, w, padding=1)


cases = {
    "softmax 512x4096": softmax,
    "layer_norm 512x4096": layer_norm,
    "attention 8x512x64": attention,
    "conv2d 3x3": conv,
}
for label, size in (("1M", M), ("16M", 16 * M)):
    for op, fn in {
        "add": lambda x, y: x + y,
        "mul": lambda x, y: x * y,
        "exp": lambda x, y: torch.exp(x),
        "tanh": lambda x, y: torch.tanh(x),
        "gelu": lambda x, y: F.gelu(x),
        "sum": lambda x, y: x.sum(),
    }.items():
        cases[f"{op} {label}"] = lambda size=size, fn=fn: pointwise(size, fn)
for size in (256, 512, 1024):
    cases[f"matmul {size}"] = lambda size=size: matmul(size)


def main():
    print("PyTorch", torch.__version__, "threads", torch.get_num_threads(), flush=True)
    fn = None
    with torch.no_grad():
        for line in sys.stdin:
            command, _, rest = line.strip().partition(" ")
            answer = "ok"
            if command == "prepare":
                fn = cases[rest]()
            else:
                begin = time.perf_counter()
                for _ in range(int(rest)):
                    fn()
                answer = time.perf_counter() - begin
            print(answer, flush=True)


main()
