package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"ways/hooks/chain"
	"ways/hooks/dirs"
)

// Known is what the journal of a log knows of it, for who verifies the log.
type Known struct {
	// Name is the chain's.
	Name string
	// Head is the chain's, as far as it is known to be written.
	Head chain.Head
	// Open: an append was under way when its writer was killed, and nobody has
	// appended since. Next would be the head, and the entry, one record or several,
	// is [Begin, End) of the log.
	Open       bool
	Next       chain.Head
	Begin, End int64
	// First is the number of the first chained record in the file that was last
	// written to, at Offset; 0 before the chain's first.
	First  uint64
	Offset int64
	// AdoptedFrom to AdoptedTo are records that were found in the log when the
	// journal did not know of them; 0 for none.
	AdoptedFrom, AdoptedTo uint64
	// Size is the log's when this was read; -1 when there is none.
	Size int64
}

// Inspect returns what is known of the log at path, an absolute path without
// symlinks in its directory. It waits for the log's lock until ctx ends and
// changes nothing. The error wraps fs.ErrNotExist when there is no journal.
func Inspect(ctx context.Context, stateDir, path string) (Known, error) {
	j := newJournal(realDisk{})
	name := JournalName(path)
	place := filepath.Join(stateDir, "targets", name)
	var err error
	// For writing, since some systems want that for a lock.
	j.file, err = dirs.Open(place, os.O_RDWR)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		j.file, err = dirs.Open(place, os.O_RDONLY)
	}
	if err != nil {
		return Known{}, err
	}
	defer func() { _ = j.close() }()
	st, err := j.disk.fstat(j.file)
	if err != nil {
		return Known{}, err
	}
	j.id, j.path = st.identity, place
	if err := j.lock(ctx, place); err != nil {
		return Known{}, fmt.Errorf("lock %s: %w", place, err)
	}
	defer j.unlock()
	if err := j.load(); err != nil {
		return Known{}, err
	}
	if j.fresh {
		return Known{}, fmt.Errorf("%s is damaged: %w", place, fs.ErrNotExist)
	}
	k := Known{
		Name: name, Head: j.head, Open: j.intent.open && j.intent.chained, Begin: j.intent.begin, End: j.intent.end(),
		First: j.chainFirst, Offset: j.chainBegin, AdoptedFrom: j.adoptedFrom, AdoptedTo: j.adoptedTo, Size: -1,
	}
	if k.Open {
		k.Next = chain.Head{N: j.head.N + j.intent.records(), Hash: j.intent.hash}
	}
	log, err := j.disk.lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Known{}, err
	default:
		k.Size = log.size
	}
	return k, nil
}
