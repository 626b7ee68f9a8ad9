package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fucina-go/fucina/kernels/cpu"
)

// TestVEX compares bytes with those of GNU as 2.40 for {vex} vpdpbusd %ymmX,%ymmW,%ymmACC, and takes them apart again.
func TestVEX(t *testing.T) {
	for _, c := range []struct {
		x, w, acc int
		want      [5]byte
	}{
		{2, 1, 0, [5]byte{0xc4, 0xe2, 0x75, 0x50, 0xc2}},
		{0, 0, 0, [5]byte{0xc4, 0xe2, 0x7d, 0x50, 0xc0}},
		{15, 1, 7, [5]byte{0xc4, 0xc2, 0x75, 0x50, 0xff}},
		{2, 15, 0, [5]byte{0xc4, 0xe2, 0x05, 0x50, 0xc2}},
		{2, 7, 15, [5]byte{0xc4, 0x62, 0x45, 0x50, 0xfa}},
		{8, 9, 10, [5]byte{0xc4, 0x42, 0x35, 0x50, 0xd0}},
		{15, 15, 15, [5]byte{0xc4, 0x42, 0x05, 0x50, 0xff}},
		{14, 12, 3, [5]byte{0xc4, 0xc2, 0x1d, 0x50, 0xde}},
	} {
		if got := vexDot256(c.x, c.w, c.acc); got != c.want {
			t.Errorf("VPDPBUSD Y%d, Y%d, Y%d: got % x, want % x", c.x, c.w, c.acc, got, c.want)
		}
		x, w, acc, err := readVEX(c.want)
		if err != nil || x != c.x || w != c.w || acc != c.acc {
			t.Errorf("% x read as VPDPBUSD Y%d, Y%d, Y%d: %v", c.want, x, w, acc, err)
		}
	}
	for _, b := range [][5]byte{
		{0xc4, 0xe2, 0x75, 0x51, 0xc2}, // vpdpbusds, which saturates
		{0xc4, 0xe2, 0x71, 0x50, 0xc2}, // of xmm registers
		{0xc4, 0xe2, 0x75, 0x50, 0x00}, // of memory at rax
	} {
		if _, _, _, err := readVEX(b); err == nil {
			t.Errorf("% x was read as VPDPBUSD of ymm registers", b)
		}
	}
}

// readVEX reads an instruction as a processor does, by the fields of the three-byte VEX prefix.
func readVEX(b [5]byte) (x, w, acc int, err error) {
	const inverted = 0b1110_0000
	prefix := b[1] ^ inverted
	r, index, base, opcodes := prefix>>7, prefix>>6&1, prefix>>5&1, prefix&31
	wide, second, length, mandatory := b[2]>>7, ^b[2]>>3&15, b[2]>>2&1, b[2]&3
	mod, reg, rm := b[4]>>6, b[4]>>3&7, b[4]&7
	if b[0] != 0xC4 || opcodes != 2 || wide != 0 || length != 1 || mandatory != 1 || b[3] != 0x50 || mod != 3 ||
		index != 0 {
		return 0, 0, 0, fmt.Errorf("% x is no VPDPBUSD of ymm registers", b)
	}
	return int(base<<3 | rm), int(second), int(r<<3 | reg), nil
}

var vexLine = regexp.MustCompile(`(?m)^\tLONG \$0x([0-9a-f]{8}); BYTE \$0x([0-9a-f]{2}) // (.*)$`)

// evex is an assembly file with the EVEX encoding, which Go's assembler has, of the instructions that stand there as
// bytes, and how many they are.
func evex(t *testing.T, text string) (string, int) {
	n := 0
	out := vexLine.ReplaceAllStringFunc(text, func(line string) string {
		n++
		parts := vexLine.FindStringSubmatch(line)
		first, _ := strconv.ParseUint(parts[1], 16, 32)
		last, _ := strconv.ParseUint(parts[2], 16, 8)
		var b [5]byte
		binary.LittleEndian.PutUint32(b[:], uint32(first))
		b[4] = byte(last)
		x, w, acc, err := readVEX(b)
		if err != nil {
			t.Fatal(err)
		}
		instruction := fmt.Sprintf("VPDPBUSD Y%d, Y%d, Y%d", x, w, acc)
		if parts[3] != instruction {
			t.Fatalf("% x is %s, but called %s", b, instruction, parts[3])
		}
		return "\t" + instruction
	})
	return out, n
}

// TestKernelsInEVEX runs the kernels of AVX-VNNI on processors that know their one instruction in the other encoding:
// the tests of package qdot, on its files with the bytes of each such instruction read and written anew.
func TestKernelsInEVEX(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "qdot", "simd_amd64.s"))
	if err != nil {
		t.Fatal(err)
	}
	kernels, n := evex(t, string(text))
	if n < 500 {
		t.Errorf("%d instructions in bytes: the test misses its object", n)
	}
	if testing.Short() {
		t.Skip("building and running the tests of another package is not short")
	}
	if !cpu.Has(cpu.AVX512VNNI) {
		t.Skip("this processor has no VPDPBUSD in the EVEX encoding")
	}
	const detection = "cpu.X86.HasAVXVNNI"
	detect, err := os.ReadFile(filepath.Join("..", "..", "cpu", "cpu_amd64.go"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(detect), detection) != 1 {
		t.Fatalf("cpu_amd64.go does not ask for %s once", detection)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, text := range map[string]string{
		filepath.Join("qdot", "simd_amd64.s"): kernels,
		filepath.Join("cpu", "cpu_amd64.go"):  strings.Replace(string(detect), detection, "cpu.X86.HasAVX512VNNI", 1),
	} {
		path, err := filepath.Abs(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		replace[path] = filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(replace[path], []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, list, 0o666); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "test", "-overlay", overlay, "-v", "-run", "/^avxvnni", "../../qdot")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, test := range []string{"TestProducts", "TestUnpack", "TestLongRows"} {
		if !strings.Contains(string(out), "--- PASS: "+test+"/avxvnni") {
			t.Errorf("%s did not run:\n%s", test, out)
		}
	}
}
