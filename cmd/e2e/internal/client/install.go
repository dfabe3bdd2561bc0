package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// Version is the client the tests are written against.
const Version = "2.1.332"

// BinaryEnv names the environment variable that holds the path of a client
// binary to use instead of installing one.
const BinaryEnv = "WAYS_E2E_CLAUDE"

// Locate returns the path of a client binary: the one BinaryEnv names, else the
// npm package of Version, installed once into the user's cache directory.
// Processes that need it at the same time install it once: a lock beside it
// makes the others wait.
func Locate(ctx context.Context) (string, error) {
	if path := os.Getenv(BinaryEnv); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s names no client: %w", BinaryEnv, err)
		}
		return path, nil
	}
	return LocateVersion(ctx, Version)
}

// LocateVersion is Locate for one version, whatever the environment says.
func LocateVersion(ctx context.Context, version string) (string, error) {
	pkg, err := packageFor(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no directory to install the client into (set %s instead): %w", BinaryEnv, err)
	}
	root := filepath.Join(cache, "ways-e2e")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("the client's cache: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(root, version+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", fmt.Errorf("the client's cache: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}

	dir := filepath.Join(root, version)
	binary := filepath.Join(dir, "node_modules", filepath.FromSlash(pkg), "claude")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the client's cache: %w", err)
	}
	if err := install(ctx, dir, pkg+"@"+version); err != nil {
		return "", err
	}
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("npm installed %s without a binary in it: %w", pkg, err)
	}
	return binary, nil
}

// install brings the package to dir whole or not at all: a killed npm leaves
// its half in a directory that nobody looks into.
func install(ctx context.Context, dir, spec string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("the client is installed with npm (set %s to use one that is there): %w", BinaryEnv, err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), ".part-")
	if err != nil {
		return fmt.Errorf("the client's cache: %w", err)
	}
	defer os.RemoveAll(part)
	cmd := exec.CommandContext(ctx, npm, "install", "--ignore-scripts", "--no-save", "--prefix", part, spec)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install %s (set %s to use a client that is there): %w\n%s", spec, BinaryEnv, err, out)
	}
	if err := os.Rename(part, dir); err != nil {
		return fmt.Errorf("the client's cache: %w", err)
	}
	return nil
}

// packageFor names the package that holds a platform's native binary.
func packageFor(goos, goarch string) (string, error) {
	arch, known := map[string]string{"amd64": "x64", "arm64": "arm64"}[goarch]
	if !known || (goos != "linux" && goos != "darwin") {
		return "", fmt.Errorf("no client is published for %s/%s", goos, goarch)
	}
	return "@anthropic-ai/claude-code-" + goos + "-" + arch, nil
}
