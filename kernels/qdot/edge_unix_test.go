//go:build unix

package qdot

import (
	"bytes"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// edged is bytes that a page which cannot be read follows.
func edged(t *testing.T, size int) []byte {
	t.Helper()
	page := os.Getpagesize()
	whole := (size + page - 1) / page * page
	const private = syscall.MAP_ANON | syscall.MAP_PRIVATE
	all, err := syscall.Mmap(-1, 0, whole+page, syscall.PROT_READ|syscall.PROT_WRITE, private)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Mprotect(all[whole:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return all[whole-size : whole]
}

func words[T any](b []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(x)))
}

// TestEdges multiplies blocks of hostile bytes that end, as do the activations and the results, where nothing may be
// read any more.
func TestEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	fills := map[string]func() byte{
		"ones":   func() byte { return 0xff },
		"zeros":  func() byte { return 0 },
		"0x7f":   func() byte { return 0x7f },
		"0x80":   func() byte { return 0x80 },
		"random": func() byte { return byte(r.Uint32()) },
	}
	const most = 33
	for _, f := range formats {
		for _, blocks := range []int{1, 2, 3} {
			k := blocks * f.Block
			if k%Group != 0 {
				continue
			}
			size, each := blocks*f.Bytes, ActivationWords(k)
			rows, packed := edged(t, 2*Rows*size), edged(t, 2*f.PanelSize(k))
			x := words[uint32](edged(t, 4*most*each))
			c := words[float32](edged(t, 4*most*2*Rows))
			seconds := max(1, f.offsets)
			if f.factors { // in some tiers
				seconds = f.each / 16
			}
			form := &Form{Bytes: edged(t, 2*k*Rows), S: words[float32](edged(t, 4*2*k/f.each*Rows)),
				M: words[float32](edged(t, 4*2*k/f.each*seconds*Rows)), apart: edged(t, apartBytes(min(k, apartDepth)))}
			for i := range most {
				Quantize(x[i*each:][:each], randomX(r, k))
			}
			for name, fill := range fills {
				for i := range rows {
					rows[i] = fill()
				}
				inTiers(t, func(t *testing.T) {
					clear(packed)
					for p := range 2 {
						f.Pack(packed[p*f.PanelSize(k):], rows[p*Rows*size:], Rows, k, size)
						row := make([]byte, size)
						if f.Row(row, packed[p*f.PanelSize(k):], Rows-1, k); !bytes.Equal(row,
							rows[(p*Rows+Rows-1)*size:][:size]) {
							t.Fatalf("%s of %s: the last row came back otherwise", f.Name, name)
						}
						f.Unpack(form, p, packed[p*f.PanelSize(k):][:f.PanelSize(k)], k)
					}
					last := x[(most-1)*each:]
					y := c[len(c)-2*Rows:]
					f.Vec(y, Rows, packed, f.PanelSize(k), 2, 1, last, k)
					for j := range y {
						if want := product(f, rows[j*size:][:size], last, k); !same(y[j], want) {
							t.Fatalf("Vec, %s of %s, k=%d: %g at %d, want %g", f.Name, name, k, y[j], j, want)
						}
					}
					for _, n := range []int{1, 3, 6, most} {
						for _, cols := range []int{1, 15, 17, 32} {
							y, x := c[len(c)-n*cols:], x[(most-n)*each:]
							f.Tile(y, cols, form, x, each, n, cols, k, false)
							for _, i := range []int{0, n - 1} {
								for j := range cols {
									want := product(f, rows[j*size:][:size], x[i*each:], k)
									if !same(y[i*cols+j], want) {
										t.Fatalf("Tile of %d × %d, %s of %s, k=%d: %g at %d, %d, want %g", n, cols,
											f.Name, name, k, y[i*cols+j], i, j, want)
									}
								}
							}
						}
					}
				})
			}
		}
	}
}
