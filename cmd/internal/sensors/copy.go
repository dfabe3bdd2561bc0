package sensors

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/config/files"
	"ways/config/problem"
	"ways/config/schema"
	"ways/config/sensors"
	"ways/hooks/dirs"
)

const copyUsage = `Usage: ways sensors copy SENSOR NEW-NAME [--enable]

Makes a sensor file of your own, NEW-NAME.yaml, from another sensor. Shipped
sensors are off; a copy of one is off too, unless --enable turns it on.

Example:
  ways sensors copy tool-audit my-audit --enable`

func copySensor(env cli.Env, args []string) int {
	fs := cli.Flags("sensors copy")
	project := projectFlag(fs, env)
	enable := fs.Bool("enable", false, "turn the copy on")
	if code, done := cli.Parse(env, fs, copyUsage, args); done {
		return code
	}
	if fs.NArg() != 2 {
		return cli.WrongArgs(env, fs, "SENSOR and NEW-NAME")
	}
	d, res, err := load(env, project())
	if err != nil {
		return env.Fail("sensors copy", err)
	}
	from, name := fs.Arg(0), fs.Arg(1)
	if !schema.IsName(name) {
		return env.Fail("sensors copy", fmt.Errorf("%q cannot name a sensor; use lower-case letters, digits and dashes", visible.Line(name)))
	}
	s, ok := res.Set.Find(from)
	if !ok {
		return env.Fail("sensors copy", unknown("sensor", from, sensorNames(res.Set)))
	}
	text, err := sourceText(s)
	if err == nil {
		text, err = sensors.Rename(text, name)
	}
	if err == nil && *enable {
		text, err = sensors.SetEnabled(text, true)
	}
	if err != nil {
		return env.Fail("sensors copy", err)
	}
	if bad := problem.Errors(sensors.Check(name, text)); len(bad) > 0 {
		return env.Fail("sensors copy", fmt.Errorf("the copy would not be valid: %s", visible.Line(bad[0].String())))
	}
	path := filepath.Join(d.Sensors(), name+sensors.Suffix)
	if err := createSensor(d, path, text); err != nil {
		return env.Fail("sensors copy", err)
	}
	fmt.Fprintf(env.Stdout, "wrote %s\n", visible.Line(path))
	if fresh, ok := sensorIn(env, project(), name); ok {
		for _, r := range fresh.Rules {
			fmt.Fprintf(env.Stdout, "%s/%s is %s; sends to %s\n", name, visible.Line(r.Name), stateOf(fresh, r), visible.Line(r.Destination()))
		}
		if !fresh.Enabled {
			fmt.Fprintf(env.Stdout, "turn it on with: ways sensors enable %s\n", name)
		}
	}
	return cli.OK
}

func sensorIn(env cli.Env, project, name string) (sensors.Sensor, bool) {
	_, res, err := load(env, project)
	if err != nil {
		return sensors.Sensor{}, false
	}
	return res.Set.Find(name)
}

// sourceText is the text of the strongest file of a sensor: a file that only
// overrides a few fields of a weaker one is no sensor by itself, which the check
// of the copy finds.
func sourceText(s sensors.Sensor) ([]byte, error) {
	src := s.Sources[len(s.Sources)-1]
	if src.File == "" {
		return sensors.ShippedText(s.Name)
	}
	f, err := files.NewReader().Read(src.File)
	return f.Data, err
}

// createSensor writes a new sensor file; one that is there is not replaced.
func createSensor(d dirs.Dirs, path string, text []byte) error {
	for _, dir := range []string{d.Config, d.Sensors()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists; choose another name, or edit it", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func toggle(env cli.Env, args []string, on bool) int {
	verb := "disable"
	if on {
		verb = "enable"
	}
	fs := cli.Flags("sensors " + verb)
	usage := fmt.Sprintf("Usage: ways sensors %s SENSOR\n\nSets `enabled` in the sensor's file in your configuration directory. Everything\nelse in the file stays as it is. The next event of every session sees it.", verb)
	if code, done := cli.Parse(env, fs, usage, args); done {
		return code
	}
	if fs.NArg() != 1 {
		return cli.WrongArgs(env, fs, "one SENSOR")
	}
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return env.Fail("sensors "+verb, err)
	}
	name := fs.Arg(0)
	path := filepath.Join(d.Sensors(), filepath.Base(name)+sensors.Suffix)
	if !schema.IsName(name) {
		return env.Fail("sensors "+verb, fmt.Errorf("%q is no sensor's name", visible.Line(name)))
	}
	f, err := files.NewReader().Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return env.Fail("sensors "+verb, missing(name, path))
	}
	if err != nil {
		return env.Fail("sensors "+verb, err)
	}
	text, err := sensors.SetEnabled(f.Data, on)
	if err != nil {
		return env.Fail("sensors "+verb, fmt.Errorf("%s: %w", path, err))
	}
	if err := files.Replace(path, text); err != nil {
		return env.Fail("sensors "+verb, err)
	}
	fmt.Fprintf(env.Stdout, "%s is %sd\n", name, verb)
	return cli.OK
}

// missing says what to do about a sensor that is no file of the user's.
func missing(name, path string) error {
	if slices.Contains(sensors.Shipped(), name) {
		return fmt.Errorf("%s comes with ways and is off; make one of your own from it: ways sensors copy %s my-%s --enable", name, name, name)
	}
	return fmt.Errorf("there is no %s; ways sensors list shows what there is", visible.Line(path))
}
