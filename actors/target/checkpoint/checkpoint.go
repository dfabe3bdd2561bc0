// Package checkpoint signs the heads of chains and keeps them outside the logs,
// so that a log that was cut at its end, written anew or rolled back can be told
// from a whole one (docs/chain.md).
//
// A checkpoint is a signed note in the form of transparency logs
// (c2sp.org/tlog-checkpoint, c2sp.org/signed-note): the chain's origin, its
// number of records in decimal and its last record's hash in base64, one line
// each, an empty line, and an Ed25519 signature.
package checkpoint

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"ways/hooks/chain"
	"ways/hooks/dirs"
	"ways/hooks/temp"
)

const (
	// KeyName is the name that our keys carry.
	KeyName = "ways/checkpoint"
	// originPrefix and a chain's name are the first line of its checkpoints.
	originPrefix = "ways/chain/"
	// suffix of the files below <state>/checkpoints.
	suffix = ".notes"
	// publicSuffix is that of the file with the public key.
	publicSuffix = ".pub"
	// maxLine is the longest line of a note that is read, in bytes.
	maxLine = 4096
)

// KeyFile is where a user's signing key is, below his configuration directory.
func KeyFile(config string) string { return filepath.Join(config, "keys", "checkpoint") }

// File is where a chain's checkpoints are, below the state directory.
func File(state, name string) string { return filepath.Join(state, "checkpoints", name+suffix) }

// Keeper signs checkpoints and appends them to their files. It is used by one
// goroutine at a time.
type Keeper struct {
	state, keyFile string
	signer         note.Signer
}

// New returns a keeper for a state directory and a key file. The key is made with
// the first checkpoint.
func New(state, keyFile string) *Keeper { return &Keeper{state: state, keyFile: keyFile} }

// Write signs a chain's head and appends the note to the chain's file; the disk
// has it then. The caller holds the chain's lock.
func (k *Keeper) Write(name string, h chain.Head) (signed []byte, err error) {
	if signed, err = k.Sign(name, h); err != nil {
		return nil, err
	}
	path := File(k.state, name)
	if err := dirs.MakePrivate(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	f, err := dirs.Open(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	// The newline in front ends what a killed writer left.
	_, err = f.Write(append([]byte{'\n'}, signed...))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	return signed, nil
}

// Sign signs a chain's head and keeps it nowhere.
func (k *Keeper) Sign(name string, h chain.Head) (signed []byte, err error) {
	if k.signer == nil {
		if k.signer, err = loadSigner(k.keyFile); err != nil {
			return nil, fmt.Errorf("the key for checkpoints: %w", err)
		}
	}
	if signed, err = note.Sign(&note.Note{Text: Text(name, h)}, k.signer); err != nil {
		return nil, fmt.Errorf("sign a checkpoint of %s: %w", name, err)
	}
	return signed, nil
}

// Text is what a checkpoint says, without its signature.
func Text(name string, h chain.Head) string {
	return originPrefix + name + "\n" + strconv.FormatUint(h.N, 10) + "\n" + base64.StdEncoding.EncodeToString(h.Hash[:]) + "\n"
}

// loadSigner reads the signing key, making it when there is none.
func loadSigner(path string) (note.Signer, error) {
	temp.Sweep(filepath.Dir(path)) // a second key nobody uses
	text, err := dirs.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(path); err != nil {
			return nil, err
		}
		text, err = dirs.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(text)))
	if err != nil {
		// Its own words quote the key.
		return nil, fmt.Errorf("%s holds no signing key; move it away, and a new one is made", path)
	}
	return signer, nil
}

// makeKey makes a key pair. Of two processes that do so at once one wins, whole.
func makeKey(path string) error {
	secret, public, err := note.GenerateKey(rand.Reader, KeyName)
	if err != nil {
		return err
	}
	if err := dirs.MakePrivate(filepath.Dir(path)); err != nil {
		return err
	}
	fresh, err := temp.Create(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer temp.Discard(fresh)
	_, err = fresh.WriteString(secret + "\n")
	if err = errors.Join(err, fresh.Sync()); err != nil {
		return err
	}
	if err := os.Link(fresh.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return temp.Write(path+publicSuffix, []byte(public+"\n"), false)
}

// Verifier returns what checks signatures by the key in a file: a public key, or a
// signing key.
func Verifier(path string) (note.Verifier, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(data))
	if v, err := note.NewVerifier(text); err == nil {
		return v, nil
	}
	// PRIVATE+KEY+<name>+<hash>+<base64 of the algorithm and the seed>
	parts := strings.SplitN(text, "+", 5)
	if _, err := note.NewSigner(text); err == nil && len(parts) == 5 {
		key, err := base64.StdEncoding.DecodeString(parts[4])
		if err == nil && len(key) == 1+ed25519.SeedSize {
			public, ok := ed25519.NewKeyFromSeed(key[1:]).Public().(ed25519.PublicKey)
			if ok {
				public, err := note.NewEd25519VerifierKey(parts[2], public)
				if err == nil {
					return note.NewVerifier(public)
				}
			}
		}
	}
	return nil, fmt.Errorf("%s holds no key for checkpoints", path)
}

// Checkpoint is one that was read.
type Checkpoint struct {
	// Chain is the chain's name; empty for a checkpoint of somebody else's log.
	Chain string
	Head  chain.Head
	// Signed says that one of the known keys signed it; Forged that a signature
	// claims one of them and is wrong. Neither: another key signed it.
	Signed, Forged bool
}

// Reader reads the checkpoints of a file, one after the other. What is none, such
// as a note whose writer was killed, is passed over.
type Reader struct {
	lines   *bufio.Reader
	known   note.Verifiers
	pending []string
	err     error
}

// NewReader reads r; known are the keys.
func NewReader(r io.Reader, known ...note.Verifier) *Reader {
	return &Reader{lines: bufio.NewReaderSize(r, maxLine), known: note.VerifierList(known...)}
}

// Next returns the next checkpoint; io.EOF at the end.
func (r *Reader) Next() (Checkpoint, error) {
	// What is in front of a signature: origin, size, hash, an empty line.
	var before []string
	for {
		line, err := r.line()
		if err != nil {
			return Checkpoint{}, err
		}
		if !isSignature(line) {
			if before = append(before, line); len(before) > 4 {
				before = before[1:]
			}
			continue
		}
		signatures := line
		for {
			line, err = r.line()
			if err != nil || !isSignature(line) || len(signatures) > maxLine {
				break
			}
			signatures += line
		}
		if err == nil {
			r.pending = append(r.pending, line)
		}
		if c, ok := parse(before, signatures, r.known); ok {
			return c, nil
		}
		before = nil
	}
}

func isSignature(line string) bool { return strings.HasPrefix(line, "— ") }

// line returns the next line with its newline. A line without one, or one that is
// too long, is in no note.
func (r *Reader) line() (string, error) {
	if len(r.pending) > 0 {
		line := r.pending[0]
		r.pending = r.pending[1:]
		return line, nil
	}
	if r.err != nil {
		return "", r.err
	}
	b, err := r.lines.ReadSlice('\n')
	text := string(b)
	for errors.Is(err, bufio.ErrBufferFull) {
		text = "\n"
		_, err = r.lines.ReadSlice('\n')
	}
	if err != nil {
		r.err = err
		return "", err
	}
	return text, nil
}

// parse reads a note of exactly the form that Write writes.
func parse(before []string, signatures string, known note.Verifiers) (Checkpoint, bool) {
	if len(before) != 4 || before[3] != "\n" {
		return Checkpoint{}, false
	}
	text := strings.Join(before[:3], "")
	n, err := strconv.ParseUint(strings.TrimSuffix(before[1], "\n"), 10, 64)
	if err != nil || strconv.FormatUint(n, 10)+"\n" != before[1] {
		return Checkpoint{}, false
	}
	// Strict: otherwise the same bytes could be written in several ways.
	strict := base64.StdEncoding.Strict()
	for line := range strings.Lines(signatures) {
		if _, err := strict.DecodeString(strings.TrimSuffix(line[strings.LastIndexByte(line, ' ')+1:], "\n")); err != nil {
			return Checkpoint{}, false
		}
	}
	hash, err := strict.DecodeString(strings.TrimSuffix(before[2], "\n"))
	if err != nil || len(hash) != sha256.Size {
		return Checkpoint{}, false
	}
	c := Checkpoint{Head: chain.Head{N: n}}
	copy(c.Head.Hash[:], hash)
	if name, ours := strings.CutPrefix(strings.TrimSuffix(before[0], "\n"), originPrefix); ours {
		c.Chain = name
	}
	opened, err := note.Open([]byte(text+"\n"+signatures), known)
	var invalid *note.InvalidSignatureError
	var unknown *note.UnverifiedNoteError
	switch {
	case err == nil && len(opened.Sigs) > 0 && bytes.Equal([]byte(opened.Text), []byte(text)):
		c.Signed = true
	case errors.As(err, &invalid):
		c.Forged = true
	case errors.As(err, &unknown):
	default:
		return Checkpoint{}, false
	}
	return c, true
}

// Record is a checkpoint as a record that another rule's target is sent: section
// checkpoint, outside the numbers of its session, so its seq is 0.
func Record(session, rule, name string, h chain.Head, signed []byte, now time.Time) ([]byte, error) {
	type data struct {
		Chain string `json:"chain"`
		Rule  string `json:"rule"`
		N     uint64 `json:"n"`
		Hash  string `json:"hash"`
		Note  string `json:"note"`
	}
	return json.Marshal(struct {
		V         int    `json:"v"`
		Section   string `json:"section"`
		Event     string `json:"event"`
		Source    string `json:"source"`
		TS        string `json:"ts"`
		Session   string `json:"session"`
		Seq       uint64 `json:"seq"`
		AgentID   string `json:"agent_id"`
		AgentType string `json:"agent_type"`
		Project   string `json:"project"`
		Cwd       string `json:"cwd"`
		Data      data   `json:"data"`
	}{
		1, "checkpoint", "Checkpoint", "dispatcher", now.UTC().Format(time.RFC3339Nano), session, 0, "main", "main", "", "",
		data{name, rule, h.N, hex.EncodeToString(h.Hash[:]), string(signed)},
	})
}
