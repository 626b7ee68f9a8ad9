package starlark

import (
	"context"
	"io/fs"
	"maps"

	star "go.starlark.net/starlark"

	"github.com/fucina-go/fucina/core"
)

// attach gives the interpreter its Env and makes every operation of core's table a function.
func (it *Interp) attach() {
	it.env = core.NewEnv(it.cfg.MemLimit, it.cfg.Threads)
	it.env.Where = it.where
	it.env.NameOf = it.operandName
	it.OnCancel(it.env.Control.Stop, it.env.Control.Reset)
	for _, info := range core.All() {
		it.Predeclare(info.Name, &opFunc{info: info, it: it})
	}
	it.Predeclare("batches", star.NewBuiltin("batches", batches))
	it.Predeclare("timeit", star.NewBuiltin("timeit", timeIt))
	it.Predeclare("anomaly", star.NewBuiltin("anomaly", anomaly))
	it.Predeclare("collect_imatrix", star.NewBuiltin("collect_imatrix", collectImatrix))
	it.Predeclare("backward", star.NewBuiltin("backward", backward))
	it.Predeclare("bpe_train", star.NewBuiltin("bpe_train", trainBPE))
	it.Predeclare("clip_grad_norm", star.NewBuiltin("clip_grad_norm", clipGradNorm))
	it.Predeclare("clip_grad_value", star.NewBuiltin("clip_grad_value", clipGradValue))
	it.Predeclare("check", star.NewBuiltin("check", checkShapes))
	it.Predeclare("checkpoint", star.NewBuiltin("checkpoint", checkpoint))
	it.Predeclare("custom_grad", star.NewBuiltin("custom_grad", customGrad))
	it.Predeclare("defer_interrupt", star.NewBuiltin("defer_interrupt", deferInterrupt))
	it.Predeclare("exists", star.NewBuiltin("exists", exists))
	it.Predeclare("grad", star.NewBuiltin("grad", gradients))
	it.Predeclare("help", star.NewBuiltin("help", help))
	it.Predeclare("load_checkpoint", star.NewBuiltin("load_checkpoint", loadCheckpoint))
	it.Predeclare("save_checkpoint", star.NewBuiltin("save_checkpoint", saveCheckpoint))
	it.Predeclare("load_csv", star.NewBuiltin("load_csv", loadCSV))
	it.Predeclare("load_idx", star.NewBuiltin("load_idx", loadIdx))
	it.Predeclare("hvp", star.NewBuiltin("hvp", hvp))
	it.Predeclare("input", star.NewBuiltin("input", input))
	it.Predeclare("interruptible", star.NewBuiltin("interruptible", callInterruptible))
	it.Predeclare("interrupted", star.NewBuiltin("interrupted", interrupted))
	it.Predeclare("jvp", star.NewBuiltin("jvp", jvp))
	it.Predeclare("load_imatrix", star.NewBuiltin("load_imatrix", loadImatrix))
	it.Predeclare("load_model", star.NewBuiltin("load_model", loadModel))
	it.Predeclare("chat_template", star.NewBuiltin("chat_template", newChatTemplate))
	it.Predeclare("load_npy", star.NewBuiltin("load_npy", loadNpy))
	it.Predeclare("load_npz", star.NewBuiltin("load_npz", loadNpz))
	it.Predeclare("load_safetensors", star.NewBuiltin("load_safetensors", loadSafetensors))
	it.Predeclare("open_safetensors", star.NewBuiltin("open_safetensors", openSafetensors))
	it.Predeclare("open_gguf", star.NewBuiltin("open_gguf", openGGUF))
	it.Predeclare("save_gguf", star.NewBuiltin("save_gguf", saveGGUF))
	it.Predeclare("save_safetensors", star.NewBuiltin("save_safetensors", saveSafetensors))
	it.Predeclare("keep", star.NewBuiltin("keep", keep))
	it.Predeclare("new_model", star.NewBuiltin("new_model", newModel))
	it.Predeclare("no_grad", star.NewBuiltin("no_grad", noGrad))
	it.Predeclare("optim", optimModule())
	it.Predeclare("progress", star.NewBuiltin("progress", progress))
	it.Predeclare("quantize_model", star.NewBuiltin("quantize_model", quantizeModel))
	it.Predeclare("read_bytes", star.NewBuiltin("read_bytes", readBytes))
	it.Predeclare("read_text", star.NewBuiltin("read_text", readText))
	it.Predeclare("save_npy", star.NewBuiltin("save_npy", saveNpy))
	it.Predeclare("save_npz", star.NewBuiltin("save_npz", saveNpz))
	it.Predeclare("save_text", star.NewBuiltin("save_text", saveText))
	it.Predeclare("schedule", scheduleModule())
	it.Predeclare("scoped", star.NewBuiltin("scoped", scoped))
	it.Predeclare("seed", star.NewBuiltin("seed", seed))
	it.Predeclare("steps", star.NewBuiltin("steps", steps))
	it.Predeclare("profile", star.NewBuiltin("profile", profile))
	it.Predeclare("scope", star.NewBuiltin("scope", scope))
	it.Predeclare("threads", star.NewBuiltin("threads", threads))
	it.Predeclare("tokenizer", star.NewBuiltin("tokenizer", openTokenizer))
	it.Predeclare("variable", star.NewBuiltin("variable", variable))
}

// where is the place of the call or operator that the script is executing.
func (it *Interp) where() core.Site {
	for depth := range it.thread.CallStackDepth() {
		f := it.thread.DebugFrame(depth)
		if _, ok := f.Callable().(*star.Function); ok {
			pos := f.Position()
			return core.Site{File: pos.Filename(), Line: pos.Line, Col: pos.Col}
		}
	}
	return core.Site{}
}

// Env is what the interpreter's tensors live in.
func (it *Interp) Env() *core.Env { return it.env }

// Close ends the interpreter, which must not be running, and gives its tensor memory back. Tensors that the host still
// holds stay valid.
func (it *Interp) Close() { it.env.Close() }

// AddOp makes an operation that is in no table a function of this interpreter's scripts, and a method of its
// tensors. It must not be called during a run.
func (it *Interp) AddOp(info *core.Info) {
	if it.env.Ops == nil {
		it.env.Ops = map[string]*core.Info{}
	}
	it.env.Ops[info.Name] = info
	it.Predeclare(info.Name, &opFunc{info: info, it: it})
}

// Call calls a script's function, or any other callable value, under the limits of a run. Every error is an
// *Error.
func (it *Interp) Call(ctx context.Context, fn star.Value, args star.Tuple) (v star.Value, err error) {
	err = it.run(ctx, func() error {
		v, err = star.Call(it.thread, fn, args, nil)
		return err
	})
	return v, err
}

// UseFiles changes where files are opened from now on and forgets the modules that came from where they were. Nothing
// is saved any more, unless Config.Save was given.
func (it *Interp) UseFiles(open func(name string) (fs.File, error)) {
	it.cfg.Open = open
	if !it.saveGiven {
		it.cfg.Save = nil
	}
	maps.DeleteFunc(it.modules, func(name string, _ star.StringDict) bool {
		root, _ := builtinRoot(name)
		return root == ""
	})
}
