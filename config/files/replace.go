package files

import (
	"errors"
	"os"
	"path/filepath"

	"ways/hooks/temp"
)

// Replace gives the file at path a new content, whole or not at all, and keeps
// its mode. A symbolic link stays one: what it leads to is replaced.
func Replace(path string, data []byte) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	temp.Sweep(filepath.Dir(real))
	fresh, err := temp.Create(filepath.Dir(real))
	if err != nil {
		return err
	}
	_, err = fresh.Write(data)
	if err = errors.Join(err, fresh.Chmod(info.Mode().Perm()), fresh.Sync()); err != nil {
		temp.Discard(fresh)
		return err
	}
	return temp.Commit(fresh, real)
}
