package checkpoint_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"ways/actors/target/checkpoint"
	"ways/hooks/chain"
	"ways/hooks/redact"
)

func head(n uint64) chain.Head { return chain.Head{N: n, Hash: [32]byte{byte(n), 1, 2}} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func all(t *testing.T, data []byte, keys ...note.Verifier) []checkpoint.Checkpoint {
	t.Helper()
	r := checkpoint.NewReader(bytes.NewReader(data), keys...)
	var list []checkpoint.Checkpoint
	for {
		c, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		must(t, err)
		list = append(list, c)
	}
}

func TestWriteAndRead(t *testing.T) {
	dir := t.TempDir()
	keyFile := checkpoint.KeyFile(filepath.Join(dir, "config"))
	k := checkpoint.New(filepath.Join(dir, "state"), keyFile)
	signed, err := k.Write("tool-audit~log", head(1))
	must(t, err)
	if want := "ways/chain/tool-audit~log\n1\nAQECAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n— ways/checkpoint "; !strings.HasPrefix(string(signed), want) {
		t.Errorf("note:\n%s\nwant it to begin:\n%s", signed, want)
	}
	// Another process, with the key that is there now.
	_, err = checkpoint.New(filepath.Join(dir, "state"), keyFile).Write("tool-audit~log", head(2))
	must(t, err)
	file := checkpoint.File(filepath.Join(dir, "state"), "tool-audit~log")
	for path, mode := range map[string]os.FileMode{
		file: 0o600, keyFile: 0o600, filepath.Dir(keyFile): 0o700 | os.ModeDir, filepath.Dir(file): 0o700 | os.ModeDir,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, mode)
		}
	}
	data, err := os.ReadFile(file)
	must(t, err)
	for _, path := range []string{keyFile, keyFile + ".pub"} {
		key, err := checkpoint.Verifier(path)
		must(t, err)
		got := all(t, data, key)
		if len(got) != 2 || got[0] != (checkpoint.Checkpoint{Chain: "tool-audit~log", Head: head(1), Signed: true}) || got[1].Head != head(2) {
			t.Errorf("with %s: %+v", filepath.Base(path), got)
		}
	}
	if got := all(t, data); len(got) != 2 || got[0].Signed || got[0].Forged {
		t.Errorf("without a key: %+v", got)
	}
	entries, err := os.ReadDir(filepath.Dir(keyFile))
	if err != nil || len(entries) != 2 {
		t.Errorf("beside the key: %v, %v", entries, err)
	}
}

// Whatever is changed in a note, it does not count as signed.
func TestEveryFlipIsNoticed(t *testing.T) {
	dir := t.TempDir()
	keyFile := checkpoint.KeyFile(dir)
	signed, err := checkpoint.New(dir, keyFile).Write("c", head(3))
	must(t, err)
	key, err := checkpoint.Verifier(keyFile)
	must(t, err)
	for i := range signed {
		for bit := range 8 {
			bad := bytes.Clone(signed)
			bad[i] ^= 1 << bit
			for _, c := range all(t, bad, key) {
				if c.Signed {
					t.Errorf("byte %d, bit %d: %+v", i, bit, c)
				}
			}
		}
	}
	for n := range len(signed) {
		if got := all(t, signed[:n], key); len(got) > 0 {
			t.Errorf("the first %d bytes: %+v", n, got)
		}
		// A whole one behind a torn one is found.
		torn := append(append(bytes.Clone(signed[:n]), '\n'), signed...)
		if got := all(t, torn, key); len(got) == 0 || !got[len(got)-1].Signed {
			t.Errorf("behind the first %d bytes: %+v", n, got)
		}
	}
}

func TestKeysMadeAtOnceAreOne(t *testing.T) {
	dir := t.TempDir()
	keyFile := checkpoint.KeyFile(dir)
	var wait sync.WaitGroup
	notes := make([][]byte, 8)
	for i := range notes {
		wait.Go(func() {
			var err error
			notes[i], err = checkpoint.New(filepath.Join(dir, "state"), keyFile).Write("c", head(7))
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for i := range notes {
		if !bytes.Equal(notes[i], notes[0]) {
			t.Error("two keys signed")
		}
	}
}

func TestABadKeyFileIsNotQuoted(t *testing.T) {
	dir := t.TempDir()
	keyFile := checkpoint.KeyFile(dir)
	must(t, os.MkdirAll(filepath.Dir(keyFile), 0o700))
	must(t, os.WriteFile(keyFile, []byte("PRIVATE+KEY+secret"), 0o600))
	_, err := checkpoint.New(dir, keyFile).Write("c", head(1))
	if err == nil || strings.Contains(err.Error(), "PRIVATE") || !strings.Contains(err.Error(), keyFile) {
		t.Errorf("error = %v", err)
	}
	if _, err := checkpoint.Verifier(keyFile); err == nil || strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("error = %v", err)
	}
}

func FuzzReader(f *testing.F) {
	dir := f.TempDir()
	signed, err := checkpoint.New(dir, checkpoint.KeyFile(dir)).Write("c", head(3))
	if err != nil {
		f.Fatal(err)
	}
	key, err := checkpoint.Verifier(checkpoint.KeyFile(dir))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("ways/chain/c\n3\nAQECAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n— ways/checkpoint AAAAAAAA\n"))
	f.Add([]byte("— \n— a b\n\n\n"))
	f.Add(signed)
	f.Fuzz(func(t *testing.T, b []byte) {
		r := checkpoint.NewReader(bytes.NewReader(b), key)
		for range len(b) + 1 {
			c, err := r.Next()
			if err != nil {
				return
			}
			if c.Signed && !bytes.Contains(b, []byte(checkpoint.Text(c.Chain, c.Head))) {
				t.Errorf("%+v counts as signed", c)
			}
		}
		t.Error("the reader does not end")
	})
}

// Masking leaves a checkpoint whole: its note can be verified where it arrives.
func TestARecordIsNotMasked(t *testing.T) {
	dir := t.TempDir()
	keyFile := checkpoint.KeyFile(dir)
	masker, err := redact.New(redact.Options{})
	must(t, err)
	for n := uint64(1); n <= 50; n++ {
		h := chain.Head{N: n, Hash: sha256.Sum256([]byte{byte(n)})}
		signed, err := checkpoint.New(dir, keyFile).Write("c", h)
		must(t, err)
		record, err := checkpoint.Record("s", "a/b", "c", h, signed, time.Unix(1, 0))
		must(t, err)
		body := masker.Seal(record, redact.Envelope{Rule: "x/y"})
		var got struct{ Data struct{ Note, Hash string } }
		must(t, json.Unmarshal(body.Bytes(), &got))
		if got.Data.Note != string(signed) || got.Data.Hash != hex.EncodeToString(h.Hash[:]) || body.Counts() != nil {
			t.Fatalf("sealed: %s", body.Bytes())
		}
	}
}
