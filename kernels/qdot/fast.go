package qdot

func (f *Format) vecFast(c []float32, panels []byte, next, count int, x []uint32, k int) bool {
	return false
}

func (f *Format) unpackFast(bytes []byte, s, m []float32, panel []byte, k int) bool { return false }
