package grad_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestNets runs what PyTorch's cases leave out of the operations on neural networks: every option, and the
// operations that PyTorch has not, by their definitions.
func TestNets(t *testing.T) {
	for _, file := range []string{"nets", "windows", "choices"} {
		text, err := os.ReadFile("testdata/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var cases []*torchCase
		if err := json.Unmarshal(text, &cases); err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			names := make([][]string, len(c.Inputs))
			for i, input := range c.Inputs {
				names[i] = strings.Fields(input.Axes)
			}
			// The numbers have six digits.
			if off, err := c.run(c.Expr, names); err != nil || !(off <= 1e-5) {
				t.Errorf("%s: off by %.2g, %v", c.Expr, off, err)
			}
		}
	}
}
