package starlark

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fucina-go/fucina/core"
)

// Save writes the file that a script calls name, all of it or nothing, by what write puts into w; op is the function
// that the script called. In shape-only mode it does nothing.
func (it *Interp) Save(op, name string, write func(w io.Writer) error) error {
	if it.env.IsShapeOnly() {
		return nil
	}
	if it.cfg.Save == nil {
		return &core.Error{Op: op, Msg: fmt.Sprintf("cannot save %s: this program lets scripts write no files", name)}
	}
	if name == "" {
		e := &core.Error{Op: op, Msg: "got no file name", Hint: "it is a text, and relative to the working directory"}
		if kind, ok := strings.CutPrefix(op, "save_"); ok {
			e.Hint = fmt.Sprintf("as in: %s(\"a.%s\", …)", op, kind)
		}
		return e
	}
	err := it.cfg.Save(it.ResolvePath(name), func(w io.Writer) error { return write(&watchedWriter{w, it}) })
	if dir := path.Dir(filepath.ToSlash(name)); dir != "." && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: cannot save %s: there is no folder %s", op, name, dir)
	}
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		return fmt.Errorf("%s: cannot save %s: %s", op, name, reason(err))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// watchedWriter writes until the run has to stop.
type watchedWriter struct {
	io.Writer
	it *Interp
}

// Write writes piece by piece, or returns why the run has to stop.
func (w *watchedWriter) Write(b []byte) (n int, err error) {
	const most = 1 << 20
	for {
		some := b[:min(most, len(b))]
		if err := w.it.spend(len(some) / stepBytes / 16); err != nil {
			return n, err
		}
		k, err := w.Writer.Write(some)
		n, b = n+k, b[k:]
		if err != nil || len(b) == 0 {
			return n, err
		}
	}
}

// folder is what saving asks of a file system: the operating system's, or an *os.Root.
type folder interface {
	Lstat(name string) (fs.FileInfo, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Remove(name string) error
	Rename(old, new string) error
}

// SaveIn is a Config.Save that writes files inside root: a name that leaves it, by ../, as an absolute path or through
// a symbolic link, is an error.
func SaveIn(root *os.Root) func(name string, write func(w io.Writer) error) error {
	return func(name string, write func(w io.Writer) error) error { return saveFile(root, name, write) }
}

// anywhere is the files of the operating system.
type anywhere struct{}

func (anywhere) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }
func (anywhere) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}
func (anywhere) Remove(name string) error     { return os.Remove(name) }
func (anywhere) Rename(old, new string) error { return os.Rename(old, new) }

// saveFile writes a temporary file in the folder of name and gives it that name at the end, so that there is the
// old file or the new one, never a part of one. The new one may be read by those who might read the old one.
func saveFile(in folder, name string, write func(w io.Writer) error) error {
	old, err := in.Lstat(name)
	switch {
	case err == nil && old.IsDir():
		return &fs.PathError{Op: "save", Path: name, Err: errors.New("it is a folder, want a file in it")}
	case err == nil && !old.Mode().IsRegular():
		return &fs.PathError{Op: "save", Path: name, Err: errors.New("there is something other than a file")}
	}
	f, path, err := temporary(in, name)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done { // also when write panics
			f.Close()
			in.Remove(path)
		}
	}()
	if old != nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := write(&flushed{file: f}); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := in.Rename(path, name); err != nil {
		return err
	}
	done = true
	return nil
}

// flushed is a file that is brought to the disk as it grows: what a Sync at the end had to bring at once would hold up
// an interrupt for as long.
type flushed struct {
	file    *os.File
	pending int // bytes since the last Sync
}

// Write writes, and waits for the disk every few MiB.
func (f *flushed) Write(b []byte) (int, error) {
	const most = 4 << 20
	n, err := f.file.Write(b)
	if f.pending += n; err == nil && f.pending >= most {
		f.pending = 0
		err = f.file.Sync()
	}
	return n, err
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
	f, path, err := temporary(anywhere{}, name)
	if err != nil {
		return err
	}
	defer os.Remove(path) // what is left of it after an error
	f.Close()
	if err := os.Remove(path); err != nil {
		return err
	}
	if err := os.Link(name, path); err != nil {
		if err := copyFile(path, name); err != nil {
			return err
		}
	}
	return os.Rename(path, numbered(1))
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
func temporary(in folder, name string) (f *os.File, path string, err error) {
	dir, base := filepath.Split(name)
	for i := range 100 {
		path = filepath.Join(dir, fmt.Sprintf(".%s.%d.%d.tmp", base, os.Getpid(), i))
		f, err = in.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, path, err
}
