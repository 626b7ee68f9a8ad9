package starlark

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fucina-go/fucina/core"
)

// save writes the file that a script calls name; op is the function it called. In shape-only mode it does nothing.
func (it *Interp) save(op, name string, write func(w io.Writer) error) error {
	if it.env.IsShapeOnly() {
		return nil
	}
	if it.cfg.Save == nil {
		return &core.Error{Op: op, Msg: fmt.Sprintf("cannot save %s: this program lets scripts write no files", name)}
	}
	err := it.cfg.Save(it.ResolvePath(name), func(w io.Writer) error { return write(stoppable{w, it.env, op}) })
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		return fmt.Errorf("%s: cannot save %s: %s", op, name, reason(err))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// stoppable is a file that is being written and is given up when the run is to stop.
type stoppable struct {
	io.Writer
	env *core.Env
	op  string
}

func (w stoppable) Write(b []byte) (n int, err error) {
	const most = 1 << 20
	for {
		if w.env.Control.Stopped() {
			return n, &core.Canceled{Op: w.op}
		}
		k, err := w.Writer.Write(b[:min(most, len(b))])
		n, b = n+k, b[k:]
		if err != nil || len(b) == 0 {
			return n, err
		}
	}
}

// saveFile writes a temporary file in the folder of name and gives it that name at the end, so that there is the
// old file or the new one, never a part of one.
func saveFile(name string, write func(w io.Writer) error) error {
	if old, err := os.Lstat(name); err == nil && !old.Mode().IsRegular() {
		return &fs.PathError{Op: "save", Path: name, Err: errors.New("there is something other than a file")}
	}
	f, err := temporary(name)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done { // also when write panics
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	done = true
	return nil
}

// rotateFile lets the file called name also be called run.1.safetensors, if it is run.safetensors, after giving the one
// that was so called the next number, and so on up to keep. At every moment name is the whole file that it was.
func rotateFile(name string, keep int) error {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	kind := filepath.Ext(name)
	numbered := func(i int) string { return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(name, kind), i, kind) }
	for i := keep - 1; i > 0; i-- {
		if err := os.Rename(numbered(i), numbered(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := temporary(name)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // what is left of it after an error
	f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if err := os.Link(name, f.Name()); err != nil {
		if err := copyFile(f.Name(), name); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), numbered(1))
}

// copyFile is for where a file cannot have two names.
func copyFile(to, from string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Sync(), w.Close())
}

// temporary creates a file beside name, with the permissions that a new file has.
func temporary(name string) (f *os.File, err error) {
	dir, base := filepath.Split(name)
	for i := range 100 {
		f, err = os.OpenFile(filepath.Join(dir, fmt.Sprintf(".%s.%d.%d.tmp", base, os.Getpid(), i)),
			os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, err
}
