package cpu

import "testing"

func TestForce(t *testing.T) {
	all := Tiers()
	best := all[len(all)-1]
	if Current() != best || all[0] != Generic {
		t.Fatalf("tiers %v, current %s: want the last one", all, Current())
	}
	for _, tier := range all {
		restore, ok := Force(tier)
		if !ok || Current() != tier {
			t.Errorf("forced %s, current is %s", tier, Current())
		}
		restore()
	}
	if Current() != best {
		t.Errorf("restored %s, want %s", Current(), best)
	}
	for i := 1; i < len(all); i++ {
		if all[i] <= all[i-1] {
			t.Errorf("tiers %v are not in ascending order", all)
		}
	}
	for _, tier := range []Tier{AVX2, NEON} { // no machine has both
		if restore, ok := Force(tier); ok {
			restore()
			continue
		}
		if Current() != best {
			t.Errorf("a tier that is lacking changed the current one to %s", Current())
		}
		return
	}
	t.Error("tiers of two architectures could be forced")
}

func TestFeaturesNeedTheirTier(t *testing.T) {
	restore, _ := Force(Generic)
	defer restore()
	for _, f := range []Feature{AVX512VNNI, AVX512BF16, DotProd} {
		if Has(f) {
			t.Errorf("feature %d in tier %s", f, Current())
		}
	}
}

func TestForgo(t *testing.T) {
	all := []Feature{AVX512VNNI, AVX512BF16, DotProd}
	had := map[Feature]bool{}
	for _, f := range all {
		had[f] = Has(f)
	}
	for _, f := range all {
		restore := Forgo(f)
		for _, g := range all {
			if want := had[g] && f != g; Has(g) != want {
				t.Errorf("without feature %d, feature %d: %t, want %t", f, g, Has(g), want)
			}
		}
		restore()
		if Has(f) != had[f] {
			t.Errorf("feature %d did not come back", f)
		}
	}
}

func TestTierNames(t *testing.T) {
	for tier, want := range map[Tier]string{Generic: "go", AVX2: "avx2", AVXVNNI: "avxvnni", AVX512: "avx512",
		NEON: "neon", I8MM: "i8mm"} {
		if tier.String() != want {
			t.Errorf("tier %d is %q, want %q", uint32(tier), tier.String(), want)
		}
	}
}
