"""Writes traces.json: optimizers in float64 on the problem of optimizers.json.gz, with PyTorch 1.13.0.

    /usr/bin/python3 traces.py

Lion and Adafactor, which that version lacks, are written out here from their papers.
"""
import gzip, json, math, torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
p = json.load(gzip.open("optimizers.json.gz"))["problem"]
A, B, W0, C0 = (torch.tensor(p[k]) for k in ("A", "b", "W0", "c0"))


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            b1, b2 = g["betas"]
            for x in g["params"]:
                m = self.state[x].setdefault("m", torch.zeros_like(x))
                c = b1 * m + (1 - b1) * x.grad
                x -= g["lr"] * (torch.sign(c) + g["weight_decay"] * x)
                m.copy_(b2 * m + (1 - b2) * x.grad)


class Adafactor(torch.optim.Optimizer):
    def __init__(self, params, lr, beta2_decay=-0.8, eps=1e-3, clipping=1.0, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, beta2_decay=beta2_decay, eps=eps, clipping=clipping,
                                      weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for x in g["params"]:
                s = self.state[x]
                s["n"] = n = s.get("n", 0) + 1
                f = n ** g["beta2_decay"]
                rms = lambda t: math.sqrt((t * t).mean().item())
                alpha = max(g["eps"], rms(x)) * min(g["lr"], 1 / math.sqrt(n))
                x *= 1 - g["lr"] * g["weight_decay"]
                q = x.grad ** 2
                tiny = torch.finfo(x.dtype).eps
                if x.dim() == 2:
                    for k, v in (("row", q.mean(1)), ("col", q.mean(0))):
                        s[k] = s.get(k, torch.zeros_like(v)) * (1 - f) + v * f
                    v = s["row"][:, None] * s["col"][None, :] / max(s["row"].mean().item(), tiny)
                else:
                    s["v"] = v = s.get("v", torch.zeros_like(x)) * (1 - f) + q * f
                u = x.grad / torch.sqrt(torch.clamp(v, min=tiny * tiny))
                x -= alpha / max(1, rms(u) / g["clipping"]) * u


O = torch.optim
RUNS = [
    ("sgd", O.SGD, dict(lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.01)),
    ("sgd", O.SGD, dict(lr=0.01, momentum=0.9, nesterov=True, maximize=True)),
    ("adam", O.Adam, dict(lr=0.02, amsgrad=True, weight_decay=0.1)),
    ("adamw", O.AdamW, dict(lr=0.02, betas=(0.8, 0.95), weight_decay=0.1, maximize=True)),
    ("rmsprop", O.RMSprop, dict(lr=0.01, alpha=0.9, momentum=0.5, centered=True, weight_decay=0.1)),
    ("rmsprop", O.RMSprop, dict(lr=0.01, centered=True)),
    ("adagrad", O.Adagrad, dict(lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.2)),
    ("adadelta", O.Adadelta, dict(lr=1.0, rho=0.8, eps=1e-4, weight_decay=0.1)),
    ("adamax", O.Adamax, dict(lr=0.02, betas=(0.8, 0.95), weight_decay=0.1)),
    ("nadam", O.NAdam, dict(lr=0.02, betas=(0.8, 0.95), weight_decay=0.1, momentum_decay=0.05)),
    ("nadam", O.NAdam, dict(lr=0.01)),
    ("radam", O.RAdam, dict(lr=0.02, betas=(0.8, 0.95), weight_decay=0.1)),
    ("rprop", O.Rprop, dict(lr=0.05, etas=(0.4, 1.3), step_sizes=(0.01, 0.09))),
    ("lion", Lion, dict(lr=0.01, betas=(0.8, 0.95), weight_decay=0.1)),
    ("adafactor", Adafactor, dict(lr=0.1, weight_decay=0.1)),
    ("adafactor", Adafactor, dict(lr=0.02, clipping=0.7, eps=2.0, beta2_decay=-0.5)),
]

out = []
for name, make, attrs in RUNS:
    W, c = W0.clone().requires_grad_(), C0.clone().requires_grad_()
    more = dict(foreach=True) if name == "nadam" else {}  # the other one has a factor too many
    o = make([W, c], **attrs, **more)
    trace = []
    for _ in range(8):
        o.zero_grad()
        loss = ((A @ W + c - B) ** 2).mean() + 0.01 * torch.sin(3 * W).sum()
        loss.backward()
        o.step()
        trace.append(dict(loss=loss.item(), W=W.flatten().tolist(), c=c.tolist()))
    out.append(dict(optimizer=name, attrs=attrs, trace=trace))
json.dump(dict(runs=out), open("traces.json", "w"), separators=(",", ":"))
