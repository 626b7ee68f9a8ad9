package qdot

// assembly tells whether the products run in assembly.
func assembly() bool { return false }

const hasSIMD = false

func quantizeRow(dst *uint32, x *float32, groups int) {}

func (f *Format) packFast(panel, rows []byte, n, blocks, stride int) bool { return false }

func (f *Format) vecFast(c []float32, panels []byte, next, count int, x []uint32, k int) bool {
	return false
}

func (f *Format) unpackFast(bytes []byte, s, m []float32, panel []byte, k int) bool { return false }

func (f *Format) tileFast(c []float32, ldc int, form *Form, x []uint32, stride, rows, cols, k int, add bool) bool {
	return false
}
