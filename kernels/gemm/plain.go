package gemm

import "github.com/fucina-go/fucina/kernels/num"

// addNN adds multiples of rows of b to a row of c, four at a time, in blocks of
// b that stay in a second level cache while all rows of a pass over them.
func addNN[T num.Float](c, a, b []T, m, n, k, lda, ldb, ldc int) {
	const depth, width = 64, 1024
	for j := 0; j < n; j += width {
		w := min(width, n-j)
		for p := 0; p < k; p += depth {
			d := min(depth, k-p)
			for i := range m {
				addRows(c[i*ldc+j:][:w], a[i*lda+p:][:d], b[p*ldb+j:], ldb)
			}
		}
	}
}

// addRows adds a[p] times row p of b to c.
func addRows[T num.Float](c, a, b []T, ldb int) {
	n := len(c)
	p := 0
	for ; p+4 <= len(a); p += 4 {
		a0, a1, a2, a3 := a[p], a[p+1], a[p+2], a[p+3]
		b0, b1, b2, b3 := b[p*ldb:][:n], b[(p+1)*ldb:][:n], b[(p+2)*ldb:][:n], b[(p+3)*ldb:][:n]
		for j, acc := range c {
			acc = num.FMA(a0, b0[j], acc)
			acc = num.FMA(a1, b1[j], acc)
			acc = num.FMA(a2, b2[j], acc)
			c[j] = num.FMA(a3, b3[j], acc)
		}
	}
	for ; p < len(a); p++ {
		a0, b0 := a[p], b[p*ldb:][:n]
		for j, acc := range c {
			c[j] = num.FMA(a0, b0[j], acc)
		}
	}
}

// plainNT takes six rows of b at a time: six chains run side by side, and with
// their products they just fit into the registers.
func plainNT[T num.Float](c, a, b []T, m, n, k, lda, ldb, ldc int) {
	const tile = 6
	if n < tile {
		for i := range m {
			for j := range n {
				c[i*ldc+j] = dot(a[i*lda:][:k], b[j*ldb:][:k], 0)
			}
		}
		return
	}
	for j := 0; j < n; j += tile {
		j := min(j, n-tile) // the last tile may compute some columns again, to the same bits
		for i := range m {
			dot6((*[tile]T)(c[i*ldc+j:]), a[i*lda:][:k], b[j*ldb:], ldb)
		}
	}
}

// dot goes on with a chain.
func dot[T num.Float](x, y []T, acc T) T {
	y = y[:len(x)]
	for p, v := range x {
		acc = num.FMA(v, y[p], acc)
	}
	return acc
}

// dot6 sets c[j] to the product of x and row j of b.
func dot6[T num.Float](c *[6]T, x, b []T, ldb int) {
	k := len(x)
	b0, b1, b2 := b[:k], b[ldb:][:k], b[2*ldb:][:k]
	b3, b4, b5 := b[3*ldb:][:k], b[4*ldb:][:k], b[5*ldb:][:k]
	var c0, c1, c2, c3, c4, c5 T
	for p, v := range x {
		c0 = num.FMA(v, b0[p], c0)
		c1 = num.FMA(v, b1[p], c1)
		c2 = num.FMA(v, b2[p], c2)
		c3 = num.FMA(v, b3[p], c3)
		c4 = num.FMA(v, b4[p], c4)
		c5 = num.FMA(v, b5[p], c5)
	}
	*c = [6]T{c0, c1, c2, c3, c4, c5}
}
