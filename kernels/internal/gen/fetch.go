package main

// qdotFetch writes the function that fetches memory ahead of its use.
func (s *source) qdotFetch() {
	f := s.declare("fetch", "p uintptr, lines int", "fetch asks for that many lines of 64 bytes, the first at p, to "+
		"come into the second-level cache. Memory that is not there does no harm.")
	s.begin(f, avx2, "")
	s.p("MOVQ %s, SI", s.args["p"])
	s.p("MOVQ %s, CX", s.args["lines"])
	s.place("loop")
	s.p("PREFETCHT1 (SI)")
	s.p("ADDQ $64, SI")
	s.p("DECQ CX")
	s.p("JNE loop")
	s.p("RET")
	s.begin(f, neon, "")
	s.p("MOVD %s, R0", s.args["p"])
	s.p("MOVD %s, R1", s.args["lines"])
	s.place("loop")
	s.p("PRFM (R0), PLDL2KEEP")
	s.p("ADD $64, R0")
	s.p("SUBS $1, R1")
	s.p("BNE loop")
	s.p("RET")
}
