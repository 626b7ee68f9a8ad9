# Writes nn.json: outputs and gradients of modules with given weights, by PyTorch 1.13.
import json, math, torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(3)
cases = []
def num(v): return [float('%.6g' % x) for x in v.detach().double().flatten().tolist()]
def short(t):
    """t with values that are short to write."""
    with torch.no_grad(): t.copy_((t*100).round()/100)
    return t
def case(name, f, params, x, y_axes):
    """params is {our name: (torch parameter, shape here or None, slice or None)}; f(x) is the output."""
    if x.dtype.is_floating_point: x = short(x).requires_grad_(True)
    y = f(x)
    g = (torch.randn(y.shape)*10).round()/10
    y.backward(g)
    def entry(t, shape, cut):
        t = t if cut is None else t[cut]
        return list(shape or t.shape), num(t)
    c = {"name": name, "x": {"shape": list(x.shape), "data": num(x)}, "y": num(y), "y_axes": y_axes, "grad_y": num(g), "params": {}}
    if x.dtype.is_floating_point: c["grad_x"] = num(x.grad)
    for k, (p, shape, cut) in params.items():
        s, d = entry(p, shape, cut)
        c["params"][k] = {"shape": s, "data": d, "grad": entry(p.grad, shape, cut)[1]}
    cases.append(c)
def init(m):
    for p in m.parameters(): short(nn.init.normal_(p, std=0.4))
    return m
R = torch.randn

m = init(nn.Linear(3, 4)); case("linear", m, {"w": (m.weight, None, None), "b": (m.bias, None, None)}, R(2, 3), "batch out")
m = init(nn.Embedding(5, 3)); case("embedding", m, {"w": (m.weight, None, None)}, torch.tensor([[1, 4, 1], [0, 2, 1]]), "batch seq embed")
m = init(nn.LayerNorm(6)); case("layer_norm", m, {"w": (m.weight, None, None), "b": (m.bias, None, None)}, R(2, 6), "batch embed")
w = nn.Parameter(short(R(6))); case("rms_norm", lambda x: x*torch.rsqrt((x*x).mean(-1, keepdim=True)+1e-6)*w, {"w": (w, None, None)}, R(2, 6), "batch embed")

E, H = 8, 2
D = E//H
def heads(a, prefix=""):
    out = {}
    for i, n in enumerate("qkv"):
        cut = slice(i*E, (i+1)*E)
        out[prefix+"w_"+n] = (a.in_proj_weight, (H, D, E), cut)
        out[prefix+"b_"+n] = (a.in_proj_bias, (H, D), cut)
    out[prefix+"w_o"] = (a.out_proj.weight, (E, H, D), None)
    out[prefix+"b_o"] = (a.out_proj.bias, None, None)
    return out
def causal(n): return torch.triu(torch.full((n, n), -math.inf), 1)
m = init(nn.MultiheadAttention(E, H, batch_first=True))
case("attention", lambda x: m(x, x, x, attn_mask=causal(5), need_weights=False)[0], heads(m), R(2, 5, E), "batch seq embed")

# four heads share two of keys and values; rotary positions, pairs half a head apart; by definition
G, K, D4 = 4, 2, 4
q, k, v, o = (nn.Parameter(short(R(n, E)*0.4)) for n in (G*D4, K*D4, K*D4, E))
o = nn.Parameter(short(R(E, G*D4)*0.4))
def rope(t, base=100.0):
    pos = torch.arange(t.shape[1]).float()
    angle = pos[:, None]*base**(-torch.arange(0, D4, 2).float()/D4)
    c, s = angle.cos()[None, :, None], angle.sin()[None, :, None]
    a, b = t[..., :D4//2], t[..., D4//2:]
    return torch.cat([a*c-b*s, a*s+b*c], -1)
def gqa(x):
    B, T, _ = x.shape
    Q = rope((x@q.T).reshape(B, T, G, D4)); Kk = rope((x@k.T).reshape(B, T, K, D4)); V = (x@v.T).reshape(B, T, K, D4)
    Kk, V = (t.repeat_interleave(G//K, dim=2) for t in (Kk, V))
    s = torch.einsum("bqhd,bkhd->bhqk", Q, Kk)/math.sqrt(D4)+causal(T)
    return torch.einsum("bhqk,bkhd->bqhd", s.softmax(-1), V).reshape(B, T, G*D4)@o.T
case("grouped", gqa, {"w_q": (q, (G, D4, E), None), "w_k": (k, (K, D4, E), None), "w_v": (v, (K, D4, E), None), "w_o": (o, (E, G, D4), None)}, R(2, 5, E), "batch seq embed")

m = init(nn.Sequential(nn.Linear(E, 12), nn.GELU(), nn.Linear(12, E)))
case("mlp", m, {"w_up": (m[0].weight, None, None), "b_up": (m[0].bias, None, None), "w_down": (m[2].weight, None, None), "b_down": (m[2].bias, None, None)}, R(3, E), "batch embed")
gate, up, down = (nn.Parameter(short(R(*s)*0.4)) for s in ((12, E), (12, E), (E, 12)))
case("swiglu", lambda x: (F.silu(x@gate.T)*(x@up.T))@down.T, {"w_gate": (gate, None, None), "w_up": (up, None, None), "w_down": (down, None, None)}, R(3, E), "batch embed")

m = init(nn.TransformerEncoderLayer(E, H, 12, dropout=0.0, activation="gelu", batch_first=True, norm_first=True))
p = heads(m.self_attn, "attention.")
p.update({"attention_norm.w": (m.norm1.weight, None, None), "attention_norm.b": (m.norm1.bias, None, None),
    "mlp_norm.w": (m.norm2.weight, None, None), "mlp_norm.b": (m.norm2.bias, None, None),
    "mlp.w_up": (m.linear1.weight, None, None), "mlp.b_up": (m.linear1.bias, None, None),
    "mlp.w_down": (m.linear2.weight, None, None), "mlp.b_down": (m.linear2.bias, None, None)})
case("block", lambda x: m(x, src_mask=causal(5)), p, R(2, 5, E), "batch seq embed")

m = init(nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), groups=2))
case("conv", m, {"w": (m.weight, None, None), "b": (m.bias, None, None)}, R(2, 4, 5, 4), "batch channel y x")
for name, kind in (("lstm", nn.LSTM), ("gru", nn.GRU)):
    m = init(kind(3, 4, batch_first=True))
    case(name, lambda x: m(x)[0], {a: (getattr(m, b), None, None) for a, b in
        (("w_ih", "weight_ih_l0"), ("w_hh", "weight_hh_l0"), ("b_ih", "bias_ih_l0"), ("b_hh", "bias_hh_l0"))}, R(2, 5, 3), "batch seq hidden")
print(json.dumps(cases, separators=(",", ":")))
