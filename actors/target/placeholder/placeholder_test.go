package placeholder

import (
	"errors"
	"strings"
	"testing"
)

const record = `{"ts":"2026-01-02T03:04:05Z","n":9007199254740993,"dup":"first","dup":"second","empty":"","null":null,` +
	`"data":{"prompt":"a\u0000\"b\"\nc","lone":"x\ud99c y","list":[1,{"k":"v"},[true]],"obj":{"b": 2, "a":1},"a.b":"dotted"}}`

func plain(dst []byte, v string) []byte { return append(dst, v...) }

func TestAppend(t *testing.T) {
	for _, row := range []struct{ template, want string }{
		{"", ""},
		{"no placeholder", "no placeholder"},
		{"{ts} x", "2026-01-02T03:04:05Z x"},
		{"{n}", "9007199254740993"},
		{"{data.prompt}", "a\x00\"b\"\nc"},
		{"{data.lone}", "x\ufffd y"},
		{"<{nope}{data.nope}{ts.x}{data.list.x}{n[0]}>", "<>"},
		{"<{null}{empty}>", "<>"},
		{"{dup}", "first"},
		{"{data.list}", `[1,{"k":"v"},[true]]`},
		{"{data.list[0]}{data.list[1].k}{data.list[2][0]}{data.list[3]}", "1vtrue"},
		{"{data.obj}", `{"b": 2, "a":1}`},
		{"{nope|null|empty|n|ts}", "9007199254740993"},
		{"{{ts}} }{{{n}}}", "{ts} }{9007199254740993}"},
		{"}", "}"},
	} {
		parsed, err := Parse(row.template)
		if err != nil {
			t.Errorf("Parse(%q): %v", row.template, err)
			continue
		}
		if got := string(parsed.Append([]byte(">"), []byte(record), plain)); got != ">"+row.want {
			t.Errorf("%q: %q, want %q", row.template, got, ">"+row.want)
		}
	}
}

func TestAppendToWhatIsNoRecord(t *testing.T) {
	parsed, err := Parse("<{a.b|a[0]|a}>")
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{"", "null", "[]", `"a"`, "{", `{"a"`, `{"a":`, `{"a":{`, `{"a":[`, `{"a":tru}`, "\x00"} {
		if got := string(parsed.Append(nil, []byte(in), plain)); got != "<>" {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, row := range []struct{ in, says string }{
		{"a {b", "byte 3: a { without"},
		{"{}", `"" is no field name`},
		{"{a..b}", `"" is no field name`},
		{"{a.}", `"" is no field name`},
		{"{a|}", `"" is no field name`},
		{"{ a}", `" a" is no field name`},
		{`{"a":1}`, "is no field name"},
		{"{a[x]}", "is no index"},
		{"{a[-1]}", "is no index"},
		{"{a[1}", "is no index"},
		{"{a[1]b}", "is no index"},
		{"{[1]}", "is no field name"},
		{"{a[99999999999999999999]}", "is no index"},
	} {
		_, err := Parse(row.in)
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("Parse(%q) = %v, want ErrSyntax saying %q", row.in, err, row.says)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("{ts} {data.list[1].k|n}", record)
	f.Add("{{}}{a[0][1].b}", `{"a":[[0,{"b":"\ud800"}]]}`)
	f.Add("{a", "{")
	f.Fuzz(func(t *testing.T, template, record string) {
		parsed, err := Parse(template)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		parsed.Append(nil, []byte(record), plain)
	})
}
