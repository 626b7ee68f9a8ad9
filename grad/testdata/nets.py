# Writes nets.json: outputs and gradients of operations on neural networks, by PyTorch 1.13 or, where PyTorch has
# no such operation, by its definition in loops.
import json, math, torch
import torch.nn.functional as F
torch.manual_seed(7)
cases = []
def num(v, digits=6):
    return [int(x) if x == int(x) else x for x in (float('%.*g' % (digits, x)) for x in v.detach().double().flatten().tolist())]
def case(expr, fn, **inputs):
    """expr is the script, fn the same in PyTorch; inputs are name=(tensor, axes)."""
    leaves, ins = [], []
    for name, (t, axes) in inputs.items():
        if t.dtype.is_floating_point:
            t = (t*100).round()/100 # short to write
            ins.append({"axes": axes, "shape": list(t.shape), "data": num(t)})
            t = torch.tensor(ins[-1]["data"]).float().reshape(t.shape).requires_grad_(True)
        else:
            ins.append({"axes": axes, "shape": list(t.shape), "ints": [int(x) for x in t.flatten().tolist()]})
        leaves.append(t)
    y = fn(*leaves)
    c = {"expr": expr, "inputs": ins}
    if y.dtype.is_floating_point:
        c["output"] = {"shape": list(y.shape), "data": num(y)}
        g = (torch.randn(y.shape)*10).round()/10
        y.backward(g)
        c["grad_output"] = {"shape": list(y.shape), "data": num(g)}
        c["grads"] = [{"shape": list(t.shape), "data": num(t.grad)} if t.dtype.is_floating_point and t.grad is not None else None for t in leaves]
    else:
        c["output"] = {"shape": list(y.shape), "ints": y.flatten().tolist()}
    cases.append(c)
R = torch.randn
# softmax
case('a.softmax("col", scale=0.5, mask=b)', lambda a, b: F.softmax(a*0.5+b, -1), a=(R(3,5),"row col"), b=(R(5),"col"))
case('a.softmax("col", mask=b.ne(0))', lambda a, b: F.softmax(a.masked_fill(b==0, -math.inf), -1), a=(R(3,5),"row col"), b=(torch.tensor([1,0,1,1,0]),"col"))
case('a.log_softmax("row", scale=2, mask=b)', lambda a, b: F.log_softmax(a*2+b, 0), a=(R(4,5),"row col"), b=(R(4,5),"row col"))
# norms
case('layer_norm(a, axes="c b", eps=0.01)', lambda a: F.layer_norm(a, (3,4), eps=0.01), a=(R(2,3,4),"a b c"))
case('layer_norm(a, bias=b, axes="c")', lambda a, b: F.layer_norm(a, (4,)) + b.reshape(3,1), a=(R(2,3,4),"a b c"), b=(R(3),"b"))
case('group_norm(a, 3, axes="x y")', lambda a: F.group_norm(a, 3), a=(R(2,6,1,2),"batch channel y x"))
# gates
case('geglu(a, b)', lambda a, b: F.gelu(a)*b, a=(R(3,4),"row ffn"), b=(R(3,4),"row ffn"))
case('a.glu("row")', lambda a: F.glu(a, 0), a=(R(4,3),"row col"))
case('linear(a, b, c, axis="embed")', lambda a, b, c: torch.einsum("re,hde->rhd", a, b) + c, a=(R(2,5),"row embed"), b=(R(2,3,5),"head head_dim embed"), c=(R(2,3),"head head_dim"))
# convolutions
case('a.conv(b, seq="kernel", padding={"seq": (2, 0)})', lambda a, b: F.conv1d(F.pad(a, (2,0)), b.unsqueeze(1), groups=4), a=(R(2,4,6),"batch channel seq"), b=(R(4,3),"channel kernel"))
case('a.conv(b, "channel", x="k", bias=c, padding="same")', lambda a, b, c: F.conv1d(a, b, c, padding="same"), a=(R(2,3,7),"batch channel x"), b=(R(2,3,4),"out channel k"), c=(R(2),"out"))
case('a.conv(b, "channel", x="k", stride=2, padding="same")', lambda a, b: F.conv1d(F.pad(a, (1,1)), b, stride=2), a=(R(2,3,7),"batch channel x"), b=(R(2,3,3),"out channel k"))
case('a.conv(b, "channel", x="kx", y="ky", stride={"y": 2}, dilation={"x": 2}, groups=2, padding={"y": 1})',
     lambda a, b: F.conv2d(a, b, stride=(2,1), dilation=(1,2), groups=2, padding=(1,0)), a=(R(1,4,5,4),"batch channel y x"), b=(R(4,2,3,2),"out channel ky kx"))
case('a.conv(b, "channel", x="kx", y="ky", z="kz")', lambda a, b: F.conv3d(a, b), a=(R(1,2,3,4,3),"batch channel z y x"), b=(R(2,2,2,2,2),"out channel kz ky kx"))
case('a.conv(b, "channel", x="k", padding={"x": (-1, -2)})', lambda a, b: F.conv1d(a[:,:,1:-2], b), a=(R(2,2,8),"batch channel x"), b=(R(3,2,2),"out channel k"))
case('a.order("x batch y channel").conv(b.order("kx channel out ky"), "channel", x="kx", y="ky").order("batch out y x")',
     lambda a, b: F.conv2d(a, b), a=(R(2,3,4,5),"batch channel y x"), b=(R(2,3,2,3),"out channel ky kx"))
case('a.conv(b, "batch channel", x="k")', lambda a, b: F.conv1d(a.reshape(1,6,7), b.reshape(2,6,3))[0], a=(R(2,3,7),"batch channel x"), b=(R(2,2,3,3),"out batch channel k"))
case('a.conv_transpose(b, "channel", x="kx", y="ky", bias=c, stride={"y": 2, "x": 3}, padding={"y": 1}, output_padding={"x": 2}, groups=2).order("batch out y x")',
     lambda a, b, c: F.conv_transpose2d(a, b, c, stride=(2,3), padding=(1,0), output_padding=(0,2), groups=2), a=(R(2,4,3,2),"batch channel y x"), b=(R(4,3,3,2),"channel out ky kx"), c=(R(6),"out"))
case('a.conv_transpose(b, "channel", x="k", dilation=2, stride=2, padding=2, output_padding=1)', lambda a, b: F.conv_transpose1d(a, b, dilation=2, stride=2, padding=2, output_padding=1), a=(R(2,3,5),"batch channel x"), b=(R(3,2,3),"channel out k"))
case('a.conv_transpose(b, "channel", x="k", stride=4)', lambda a, b: F.conv_transpose1d(a, b, stride=4), a=(R(1,2,3),"batch channel x"), b=(R(2,2,3),"channel out k"))
# pools
case('a.max_pool(y=3, x=2, stride={"y": 2, "x": 1}, padding=1)', lambda a: F.max_pool2d(a, (3,2), stride=(2,1), padding=1), a=(R(1,2,6,5),"batch channel y x"))
case('a.max_pool(x=3, stride=2, dilation=2, padding=1, ceil_mode=True)', lambda a: F.max_pool1d(a, 3, stride=2, dilation=2, padding=1, ceil_mode=True), a=(R(2,2,9),"batch channel x"))
case('a.max_pool(x=2)', lambda a: F.max_pool1d(a, 2), a=(torch.tensor([[[1.,1.,3.,2.,2.,2.]]]),"batch channel x"))
for pad in (True, False):
    for ceil in (True, False):
        case('a.avg_pool(y=3, x=2, stride={"y": 2, "x": 2}, padding=1, ceil_mode=%s, count_include_pad=%s)' % (ceil, pad),
             lambda a: F.avg_pool2d(a, (3,2), stride=(2,2), padding=1, ceil_mode=ceil, count_include_pad=pad), a=(R(1,1,6,5),"batch channel y x"))
case('a.avg_pool(x=3, stride=1)', lambda a: F.avg_pool1d(a, 3, stride=1), a=(R(1,2,6),"batch channel x"))
# losses
T = lambda *v: torch.tensor(v)
case('cross_entropy(a, b, "class", weight=tensor([0.5, 1.0, 2.0, 1.5], "class"), ignore_index=2, label_smoothing=0.2)',
     lambda a, b: F.cross_entropy(a, b, weight=T(.5,1.,2.,1.5), ignore_index=2, label_smoothing=0.2), a=(R(5,4),"row class"), b=(T(0,3,2,1,1),"row"))
case('cross_entropy(a, b, "class", weight=tensor([0.5, 1.0, 2.0, 1.5], "class"), reduction="none")',
     lambda a, b: F.cross_entropy(a, b, weight=T(.5,1.,2.,1.5), reduction="none"), a=(R(5,4),"row class"), b=(T(0,3,-100,1,1),"row"))
case('cross_entropy(a, b, "class", reduction="none").order("batch y x")',
     lambda a, b: F.cross_entropy(a, b, reduction="none"), a=(R(2,3,2,2),"batch class y x"), b=(torch.randint(0,3,(2,2,2)),"batch y x"))
case('cross_entropy(a, b, "class", weight=tensor([0.5, 1.0, 2.0, 1.5], "class"), label_smoothing=0.2)',
     lambda a, b: F.cross_entropy(a, b, weight=T(.5,1.,2.,1.5), label_smoothing=0.2), a=(R(5,4),"row class"), b=(F.softmax(R(5,4),-1),"row class"))
case('cross_entropy(a, b, "class", reduction="sum")', lambda a, b: F.cross_entropy(a, b, reduction="sum"), a=(R(5,4),"row class"), b=(F.softmax(R(5,4),-1),"row class"))
case('nll_loss(a, b, "class", weight=tensor([0.5, 1.0, 2.0, 1.5], "class"))', lambda a, b: F.nll_loss(a, b, weight=T(.5,1.,2.,1.5)), a=(R(5,4),"row class"), b=(T(0,3,-100,1,1),"row"))
case('bce_with_logits(a, b, weight=c, pos_weight=tensor([0.5, 2.0, 3.0], "col"))',
     lambda a, b, c: F.binary_cross_entropy_with_logits(a, b, weight=c.detach(), pos_weight=T(.5,2.,3.)), a=(R(4,3)*3,"row col"), b=(torch.rand(4,3),"row col"), c=(torch.rand(4,3),"row col"))
case('bce_with_logits(a, b, reduction="none")', lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction="none"), a=(T(-30.,-20.,0.,20.,90.),"row"), b=(T(0.,0.,.5,1.,.25),"row"))
case('kl_div(a.log_softmax("col"), b, reduction="sum")', lambda a, b: F.kl_div(F.log_softmax(a,-1), b, reduction="sum"), a=(R(4,3),"row col"), b=(F.softmax(R(4,3),-1),"row col"))
case('kl_div(a.log_softmax("col"), b.log_softmax("col"), log_target=True)', lambda a, b: F.kl_div(F.log_softmax(a,-1), F.log_softmax(b,-1), log_target=True, reduction="mean"), a=(R(4,3),"row col"), b=(R(4,3),"row col"))
case('kl_div(a, b, reduction="none")', lambda a, b: F.kl_div(a, b.detach(), reduction="none"), a=(-torch.rand(4),"row"), b=(T(0.,.25,.5,.25),"row"))
case('smooth_l1_loss(a, b, beta=0.5, reduction="none")', lambda a, b: F.smooth_l1_loss(a, b, beta=0.5, reduction="none"), a=(R(4,3),"row col"), b=(R(4,3),"row col"))
case('smooth_l1_loss(a, b, beta=0)', lambda a, b: F.smooth_l1_loss(a, b, beta=0.), a=(R(4,3),"row col"), b=(R(4,3),"row col"))
case('huber_loss(a, b, reduction="sum")', lambda a, b: F.huber_loss(a, b, reduction="sum"), a=(R(4,3),"row col"), b=(R(4,3),"row col"))
# recurrent steps
def lstm(x, h, c, wi, wh, bi, bh):
    m = torch.nn.LSTMCell(3, 4)
    return torch.stack(torch._VF.lstm_cell(x, (h, c), wi, wh, bi, bh))
case('stack(lstm_step(a, b, c, d, e, f, g), "which")', lstm, a=(R(2,3),"batch in"), b=(R(2,4),"batch hidden"), c=(R(2,4),"batch hidden"), d=(R(16,3),"gate in"), e=(R(16,4),"gate hidden"), f=(R(16),"gate"), g=(R(16),"gate"))
case('gru_step(a, b, c, d, e, f)', lambda x, h, wi, wh, bi, bh: torch._VF.gru_cell(x, h, wi, wh, bi, bh), a=(R(2,3),"batch in"), b=(R(2,4),"batch hidden"), c=(R(12,3),"gate in"), d=(R(12,4),"gate hidden"), e=(R(12),"gate"), f=(R(12),"gate"))
case('gru_step(a, b, c, d)', lambda x, h, wi, wh: torch._VF.gru_cell(x, h, wi, wh, None, None), a=(R(2,3),"batch in"), b=(R(2,4),"batch hidden"), c=(R(12,3),"gate in"), d=(R(12,4),"gate hidden"))
# recurrences
def rec(a, b, h=None):
    a = a.expand_as(b); out = []
    for t in range(b.shape[1]):
        h = b[:,t] if h is None else a[:,t]*h + b[:,t]
        out.append(h)
    return torch.stack(out, 1)
case('linear_recurrence(a, b, "seq", initial=c)', rec, a=(R(2,5,3),"batch seq embed"), b=(R(2,5,3),"batch seq embed"), c=(R(2,3),"batch embed"))
case('linear_recurrence(a, b, "seq")', rec, a=(R(3),"embed"), b=(R(2,5,3),"batch seq embed"))
# mixtures
def route(x, k, score="softmax", norm=True, bias=None, scale=1.):
    out, idx = [], []
    for r in x:
        s = torch.sigmoid(r) if score == "sigmoid" else F.softmax(r, -1)
        by = s.detach() + (bias if bias is not None else 0)
        order = sorted(range(len(r)), key=lambda e: (-by[e].item(), e))[:k]
        w = torch.stack([s[e] for e in order])
        if norm: w = w / w.sum()
        out.append(w*scale); idx.append(order)
    return torch.stack(out), torch.tensor(idx)
case('route(a, 2)[0]', lambda a: route(a, 2)[0], a=(R(3,5),"row expert"))
case('route(a, 2)[1]', lambda a: route(a, 2)[1], a=(R(3,5),"row expert"))
case('route(a, 3, normalize=False, scale=2.5)[0]', lambda a: route(a, 3, norm=False, scale=2.5)[0], a=(R(3,5),"row expert"))
bias = T(0.3,-0.2,0.5,0.0,-0.4)
case('route(a, 2, score="sigmoid", bias=tensor([0.3, -0.2, 0.5, 0.0, -0.4], "expert"), scale=2)[0]', lambda a: route(a, 2, "sigmoid", True, bias, 2.)[0], a=(R(4,5),"row expert"))
case('route(a, 2, score="sigmoid", bias=tensor([0.3, -0.2, 0.5, 0.0, -0.4], "expert"), scale=2)[1]', lambda a: route(a, 2, "sigmoid", True, bias, 2.)[1], a=(R(4,5),"row expert"))
acts = {"silu": F.silu, "gelu": F.gelu, "relu": F.relu}
def moe(act):
    def f(x, w, idx, g, u, d):
        rows = []
        for r in range(x.shape[0]):
            y = 0
            for j in range(idx.shape[1]):
                e = idx[r,j].item()
                y = y + w[r,j] * (d[e] @ (acts[act](g[e] @ x[r]) * (u[e] @ x[r])))
            rows.append(y)
        return torch.stack(rows)
    return f
for act in acts:
    case('moe(a, b, c, d, e, f, activation="%s")' % act, moe(act), a=(R(4,2),"row embed"), b=(torch.rand(4,2),"row choice"), c=(T(0,2,2,1,0,0,2,0).reshape(4,2),"row choice"), d=(R(3,3,2),"expert ffn embed"), e=(R(3,3,2),"expert ffn embed"), f=(R(3,2,3),"expert embed ffn"))
# attention
def attend(q, k, v, mask=None, causal=False, start=None, window=0, scale=None, cap=0.):
    # q[batch, head, seq, dim], k[batch, kv_head, key_seq, dim]
    g = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1,-2) * (scale or 1/math.sqrt(q.shape[-1]))
    if cap: s = cap*torch.tanh(s/cap)
    n, m = s.shape[-2:]
    start = m - n if start is None else start
    i, j = torch.arange(n)[:,None]+start, torch.arange(m)
    see = torch.ones(n, m, dtype=torch.bool)
    if causal: see = see & (j <= i)
    if window: see = see & (j > i - window)
    if mask is not None:
        s = s + mask if mask.dtype.is_floating_point else s.masked_fill(mask == 0, -math.inf)
    return F.softmax(s.masked_fill(~see, -math.inf), -1) @ v
def qkv(n, m, dv=2, h=4, kv=2):
    return dict(a=(R(2,h,n,2),"batch head seq head_dim"), b=(R(2,kv,m,2),"batch kv_head key_seq head_dim"), c=(R(2,kv,m,dv),"batch kv_head key_seq "+("value" if dv != 2 else "head_dim")))
case('attention(a, b, c, causal=False, mask=d)', attend, **qkv(3, 5), d=(R(4,3,5),"head seq key_seq"))
case('attention(a, b, c, causal=False, mask=d)', lambda q,k,v,m: attend(q,k,v,m.reshape(2,1,1,5)), **qkv(3, 5), d=(R(2,5),"batch key_seq"))
case('attention(a, b, c, mask=d.ne(0))', lambda q,k,v,m: attend(q,k,v,m,causal=True), **qkv(3, 5), d=(T(1,0,1,1,1, 1,1,0,0,1, 1,0,0,1,1).reshape(3,5),"seq key_seq"))
case('attention(a, b, c, softcap=1.5, scale=0.8)', lambda q,k,v: attend(q,k,v,causal=True,scale=0.8,cap=1.5), **qkv(4, 4))
case('attention(a, b, c, start=1, window=2)', lambda q,k,v: attend(q,k,v,causal=True,start=1,window=2), **qkv(3, 6, dv=3))
case('attention(a, b, c)', lambda q,k,v: attend(q[None,None],k[None,None],v[None,None],causal=True)[0,0], a=(R(3,4),"row head_dim"), b=(R(5,4),"key_seq head_dim"), c=(R(5,2),"key_seq value"))
# choices: scatter with a reduction, places of the greatest, tables of cosines and sines, initial elements
AT = T(2,0,2,1, 3,3,0,3).reshape(2,4)
def reduced(how): return lambda a, b, c: a.scatter_reduce(1, b, c, how, include_self=True)
for ours, how in [("add", "sum"), ("mul", "prod"), ("max", "amax"), ("min", "amin")]:
    case('a.scatter(b, c, "col", reduce="%s")' % ours, reduced(how), a=(R(2,4),"row col"), b=(AT,"row choice"), c=(R(2,4),"row choice"))
case('a.scatter(b, c, "col", reduce="mul")', reduced("prod"), a=(R(2,4),"row col"), b=(AT,"row choice"), c=(torch.tensor([[0.,2,3,4],[0,0,5,6]]),"row choice"))
case('a.scatter(b, c, "col", reduce="max")', reduced("amax"), a=(torch.tensor([[1.,2,3,4],[0,0,0,0]]),"row col"), b=(AT,"row choice"), c=(torch.tensor([[3.,1,3,2],[1,1,0,1]]),"row choice"))
case('a.max_pool(y=3, x=2, stride={"y": 2, "x": 1}, padding=1, return_indices=True)[1]', lambda a: F.max_pool2d(a, (3,2), stride=(2,1), padding=1, return_indices=True)[1], a=(R(1,2,6,5),"batch channel y x"))
case('a.max_pool(x=3, dilation=2, stride=1, return_indices=True)[0]', lambda a: F.max_pool1d(a, 3, dilation=2, stride=1), a=(R(1,2,8),"batch channel x"))
case('a.avg_pool(x=3, dilation=2, stride=1, padding=1)', lambda a: F.pad(a, (1,1)).unfold(2, 5, 1)[..., ::2].mean(-1), a=(R(1,2,8),"batch channel x"))
def turn(x, c, s):
    p, q = x.chunk(2, -1)
    return torch.cat([p*c - q*s, p*s + q*c], -1)
case('rope(a, cos=b, sin=c, style="half")', lambda a, b, c: turn(a, b[:,None], c[:,None]), a=(R(3,2,4),"row head head_dim"), b=(R(3,2),"row pair"), c=(R(3,2),"row pair"))
def turn2(x, c, s):
    p, q = x[..., :4:2], x[..., 1:4:2]
    return torch.cat([torch.stack([p*c - q*s, p*s + q*c], -1).flatten(-2), x[..., 4:]], -1)
case('rope(a, cos=b, sin=c)', turn2, a=(R(3,5),"row head_dim"), b=(R(2),"pair"), c=(R(2),"pair"))
case('a.max("col", initial=0.5)', lambda a: torch.cat([a, torch.full((3,1), 0.5)], 1).amax(1), a=(R(3,2),"row col"))
case('a.min("col", initial=b)', lambda a, b: torch.minimum(a.amin(1), b), a=(R(4,2),"row col"), b=(torch.tensor(-0.4),""))

def write(name, keep):
    with open(name, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases if keep(c)) + "\n]\n")
def choices(c): return any(word in c["expr"] for word in ("a.scatter", "return_indices", "a.avg_pool(x=3, dilation", "cos=", "a.max(", "a.min("))
def windows(c): return not choices(c) and ("conv" in c["expr"] or "pool" in c["expr"])
write("choices.json", choices)
write("windows.json", windows)
write("nets.json", lambda c: not windows(c) and not choices(c))
print(len(cases))
