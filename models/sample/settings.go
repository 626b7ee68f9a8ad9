package sample

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Settings says how tokens are chosen. The struct is the one list of settings: the tags give a setting's name, which
// is llama.cpp's, its default, the least and the most it may be, and its help.
type Settings struct {
	Temperature float64 `arg:"temperature=0" in:"0 1e9" help:"divides the logits; 0: the most probable token"`
	TopK        int     `arg:"top_k=40" in:"0 inf" help:"keep so many of the highest logits; 0: all"`
	TopP        float64 `arg:"top_p=0.95" in:"0 1" help:"keep the fewest best whose probabilities reach it; 1: all"`
	MinP        float64 `arg:"min_p=0.05" in:"0 1" help:"keep what is so many times as probable as the best"`
	TypicalP    float64 `arg:"typical_p=1" in:"0 1" help:"keep the most typical that exceed it together; 1: all"`
	TopNSigma   float64 `arg:"top_n_sigma=0" in:"0 inf" help:"keep logits within so many deviations of the best"`

	XTCProbability float64 `arg:"xtc_probability=0" in:"0 1" help:"how often all of the best but the last are left out"`
	XTCThreshold   float64 `arg:"xtc_threshold=0.1" in:"0 1" help:"best, to xtc, is what has this probability or more"`

	DynatempRange    float64 `arg:"dynatemp_range=0" in:"0 inf" help:"the temperature may go so far up and down"`
	DynatempExponent float64 `arg:"dynatemp_exponent=1" in:"0 inf" help:"how it follows the entropy"`

	RepeatLastN      int     `arg:"repeat_last_n=64" in:"-1 inf" help:"tokens that penalties look at; -1: all"`
	RepeatPenalty    float64 `arg:"repeat_penalty=1" in:"1e-9 inf" help:"divides logits of what occurred; 1: off"`
	FrequencyPenalty float64 `arg:"frequency_penalty=0" in:"-inf inf" help:"is subtracted for every occurrence"`
	PresencePenalty  float64 `arg:"presence_penalty=0" in:"-inf inf" help:"is subtracted if there is an occurrence"`

	DRYMultiplier    float64 `arg:"dry_multiplier=0" in:"0 inf" help:"is subtracted for going on to repeat; 0: off"`
	DRYBase          float64 `arg:"dry_base=1.75" in:"1 inf" help:"times so much for every token of the repetition"`
	DRYAllowedLength int     `arg:"dry_allowed_length=2" in:"0 inf" help:"beyond so many"`
	DRYPenaltyLastN  int     `arg:"dry_penalty_last_n=-1" in:"-1 inf" help:"tokens that dry looks at; -1: all"`

	Mirostat    int     `arg:"mirostat=0" in:"0 2" help:"version of Mirostat, which replaces the filters; 0: off"`
	MirostatTau float64 `arg:"mirostat_tau=5" in:"0 inf" help:"the surprise to hold, in bits"`
	MirostatEta float64 `arg:"mirostat_eta=0.1" in:"0 1" help:"how fast it is corrected"`

	Samplers []string `arg:"samplers=penalties dry top_n_sigma top_k typ_p top_p min_p xtc temperature" help:"order"`
	Seed     uint64   `arg:"seed=0" help:"of the random numbers: the same seed gives the same text"`
}

// Setting is one of the settings.
type Setting struct {
	Name, Default, Help string
	Min, Max            float64 // of numbers, both inclusive

	index int
}

// List is the settings in the order of the struct.
func List() []Setting { return slices.Clone(list) }

var list = func() (list []Setting) {
	t := reflect.TypeFor[Settings]()
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		set := Setting{Help: tag.Get("help"), index: i, Min: math.Inf(-1), Max: math.Inf(1)}
		set.Name, set.Default, _ = strings.Cut(tag.Get("arg"), "=")
		if least, most, ok := strings.Cut(tag.Get("in"), " "); ok {
			set.Min, set.Max = number(least), number(most)
		}
		list = append(list, set)
	}
	return list
}()

func number(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err) // it stands in a tag
	}
	return f
}

// In is the setting's field of s: a *float64, *int, *uint64 or *[]string.
func (set Setting) In(s *Settings) any {
	return reflect.ValueOf(s).Elem().Field(set.index).Addr().Interface()
}

// Defaults is every setting's default.
func Defaults() Settings {
	var s Settings
	for _, set := range list {
		switch p := set.In(&s).(type) {
		case *float64:
			*p = number(set.Default)
		case *int:
			*p = int(number(set.Default))
		case *uint64:
			*p = uint64(number(set.Default))
		case *[]string:
			*p = strings.Fields(set.Default)
		}
	}
	return s
}

// SettingError is a setting that means nothing.
type SettingError struct {
	Setting Setting
	Got     string
	Want    string
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("sample: %s is %s, want %s", e.Setting.Name, e.Got, e.Want)
}

// Check returns the first setting that is out of its range, as a *SettingError.
func (s *Settings) Check() error {
	for _, set := range list {
		var v float64
		switch p := set.In(s).(type) {
		case *float64:
			v = *p
		case *int:
			v = float64(*p)
		case *[]string:
			for _, name := range *p {
				if _, ok := links[name]; !ok {
					return &SettingError{set, fmt.Sprintf("%q among others", name), "some of: " + set.Default}
				}
			}
			continue
		default:
			continue
		}
		if !(v >= set.Min && v <= set.Max) || math.IsInf(v, 0) {
			return &SettingError{set, strconv.FormatFloat(v, 'g', -1, 64), set.want()}
		}
	}
	return nil
}

// want is the range in words.
func (set Setting) want() string {
	switch least, most := strconv.FormatFloat(set.Min, 'g', -1, 64), strconv.FormatFloat(set.Max, 'g', -1, 64); {
	case math.IsInf(set.Min, -1):
		return "a finite number"
	case set.Max >= 1e9:
		return least + " or more, and finite"
	default:
		return least + " to " + most
	}
}
