"""The peer of gpt.star: the same training step in PyTorch. Prints the median of a step's processor seconds.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python3 examples/bench/torch_gpt.py small 40

OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE must not be set: on processors they do not name they halve the speed.
"""

import math
import resource
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = {"small": (4, 4, 128, 64, 12, 65), "gpt2": (12, 12, 768, 64, 4, 50257)}
LAYERS, HEADS, WIDTH, SEQ, BATCH, VOCAB = SIZES[sys.argv[1]]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_norm, self.ffn_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)
        self.register_buffer("future", torch.tril(torch.ones(SEQ, SEQ)) == 0)

    def forward(self, x):
        heads = lambda t: t.view(BATCH, SEQ, HEADS, WIDTH // HEADS).transpose(1, 2)
        q, k, v = map(heads, self.qkv(self.attn_norm(x)).split(WIDTH, 2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
        y = F.softmax(scores.masked_fill(self.future, float("-inf")), -1) @ v
        x = x + self.o(y.transpose(1, 2).contiguous().view(BATCH, SEQ, WIDTH))
        return x + self.down(F.gelu(self.up(self.ffn_norm(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCAB, WIDTH), nn.Embedding(SEQ, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(SEQ))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.t()


net = GPT()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
ids, targets = torch.randint(0, VOCAB, (BATCH, SEQ)), torch.randint(0, VOCAB, (BATCH, SEQ))


def step():
    begin = time.process_time()
    loss = F.cross_entropy(net(ids).view(-1, VOCAB), targets.view(-1))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    return time.process_time() - begin


step()
print("%.4f CPU s a step" % statistics.median(step() for _ in range(int(sys.argv[2]))))
print("%.0f MB at most" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
