package npy

import (
	"archive/zip"
	"fmt"
	"io"
	"strings"
)

// Entry is an array in an archive.
type Entry struct {
	Name string // without .npy
	file *zip.File
}

// Entries lists the arrays of an archive of size bytes, in the order of the file.
func Entries(r io.ReaderAt, size int64) ([]Entry, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("this is no .npz file: %w", err)
	}
	var list []Entry
	seen := map[string]bool{}
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		switch {
		case !ok:
			return nil, fmt.Errorf("the archive has %q, which is no .npy file", clip(f.Name))
		case seen[name]:
			return nil, fmt.Errorf("the archive has two arrays called %q", clip(name))
		}
		seen[name] = true
		if err := plausible(f, size); err != nil {
			return nil, fmt.Errorf("%s: %w", clip(f.Name), err)
		}
		list = append(list, Entry{Name: name, file: f})
	}
	return list, nil
}

// maxDeflate is how many times as long a deflated text can be, a bit more than deflate can do.
const maxDeflate = 1100

// plausible insists that the archive can hold what an entry claims.
func plausible(f *zip.File, size int64) error {
	packed := min(f.CompressedSize64, uint64(size))
	most := packed
	switch f.Method {
	case zip.Store:
	case zip.Deflate:
		most = (packed + 64) * maxDeflate
	default:
		return fmt.Errorf("compression method %d is unknown; np.savez_compressed uses deflate", f.Method)
	}
	if f.CompressedSize64 > packed || f.UncompressedSize64 > most {
		return fmt.Errorf("it claims %d bytes, which cannot be in a file of %d", f.UncompressedSize64, size)
	}
	return nil
}

// Open reads the header of the array. The array must be closed.
func (e *Entry) Open() (*Array, io.Closer, error) {
	r, err := e.file.Open()
	if err != nil {
		return nil, nil, err
	}
	a, err := New(r, int64(e.file.UncompressedSize64))
	if err != nil {
		r.Close()
		return nil, nil, err
	}
	return a, r, nil
}

// Archive writes arrays into an archive, not compressed.
type Archive struct{ z *zip.Writer }

// NewArchive begins an archive.
func NewArchive(w io.Writer) *Archive { return &Archive{zip.NewWriter(w)} }

// Create begins the array of that name, which is to be written before the next one begins: Header, then the
// elements.
func (a *Archive) Create(name string) (io.Writer, error) {
	return a.z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
}

// Close ends the archive.
func (a *Archive) Close() error { return a.z.Close() }
