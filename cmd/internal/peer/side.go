package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// side is one of the two programs in one configuration, at one kind of consumer.
type side struct {
	name string
	// http: the consumer is a server and not a file.
	http bool
	// delivery and redact are a ways rule's; empty for the Collector.
	delivery, redact string
	// configs are the Collector's files, a later one over an earlier one.
	configs []string
	// fsync is the Collector's storage's.
	fsync bool
	// synchronous: the Collector's receiver keeps nothing back in memory.
	synchronous bool
	// push: records are posted to the Collector and not read from a file.
	push bool
}

func (s side) ways() bool { return s.delivery != "" }

// what names the side in a table.
func (s side) what() string {
	to := "file"
	if s.http {
		to = "http"
	}
	if s.ways() {
		return fmt.Sprintf("ways, %s, `%s`, `redact: %s`", to, s.delivery, s.redact)
	}
	name := "Collector, " + to
	if s.name != "" {
		name += ", " + s.name
	}
	return fmt.Sprintf("%s, `fsync: %t`", name, s.fsync)
}

// rival is a rule of ways.
func rival(http bool, delivery, redact string) side {
	return side{http: http, delivery: delivery, redact: redact}
}

// peer is the Collector with configuration files.
func peer(name string, fsync bool, configs ...string) side {
	return side{name: name, http: configs[0] == "http.yaml", fsync: fsync, configs: configs}
}

// synchronous is the Collector whose file receiver hands on what it has read at
// once; by default it keeps up to 100 records, up to 100 ms, and a kill loses them.
func synchronous(name string, configs ...string) side {
	s := peer(name, true, configs...)
	s.synchronous = true
	return s
}

// gate is the feature gate for that. It is off by default: alpha in v0.165.
const gate = "stanza.synchronousLogEmitter"

// pushed is the Collector that is sent its records by who makes them.
func pushed() side {
	s := peer("pushed", true, "http.yaml", "push.yaml")
	s.push = true
	return s
}

// throughputSides are compared on a backlog.
func throughputSides() []side {
	var sides []side
	for _, http := range []bool{false, true} {
		for _, delivery := range []string{"best_effort", "at_least_once"} {
			for _, redact := range []string{"none", "secrets"} {
				sides = append(sides, rival(http, delivery, redact))
			}
		}
		if !http {
			sides = append(sides, peer("", false, "file.yaml"), peer("", true, "file.yaml"), synchronous("synchronous", "file.yaml"))
		}
	}
	return append(
		sides,
		peer("", false, "http.yaml"),
		peer("", true, "http.yaml"),
		peer("in order", true, "http.yaml", "in-order.yaml"),
		synchronous("synchronous", "http.yaml"),
		peer("one record a request", false, "http.yaml", "one-record.yaml"),
		peer("one record a request", true, "http.yaml", "one-record.yaml"),
		peer("one record a request, in order", true, "http.yaml", "one-record.yaml", "in-order.yaml"),
	)
}

// lagSides are compared on records that come one by one.
func lagSides() []side {
	return []side{
		rival(false, "best_effort", "secrets"),
		rival(false, "at_least_once", "secrets"),
		peer("", true, "file.yaml"),
		peer("every 10 ms", true, "file.yaml", "quick-file.yaml"),
		synchronous("synchronous, every 10 ms", "file.yaml", "quick-file.yaml"),
		rival(true, "best_effort", "secrets"),
		rival(true, "at_least_once", "secrets"),
		peer("", true, "http.yaml"),
		peer("every 10 ms", true, "http.yaml", "quick-http.yaml"),
		synchronous("synchronous, every 10 ms", "http.yaml", "quick-http.yaml"),
		pushed(),
	}
}

// restSides are compared on what it costs to start them, and to have them.
func restSides() []side {
	return []side{
		rival(false, "at_least_once", "secrets"),
		peer("", true, "file.yaml"),
		synchronous("synchronous, every 10 ms", "file.yaml", "quick-file.yaml"),
		rival(true, "at_least_once", "secrets"),
		peer("", true, "http.yaml"),
		synchronous("synchronous, every 10 ms", "http.yaml", "quick-http.yaml"),
	}
}

// killSides are compared on what kill -9 costs.
func killSides() []side {
	return []side{
		rival(false, "best_effort", "secrets"),
		rival(false, "at_least_once", "secrets"),
		peer("", true, "file.yaml"),
		synchronous("synchronous", "file.yaml"),
		rival(true, "at_least_once", "secrets"),
		peer("", true, "http.yaml"),
		synchronous("synchronous", "http.yaml"),
		synchronous("synchronous, one record a request, in order", "http.yaml", "one-record.yaml", "in-order.yaml"),
		pushed(),
	}
}

// sensor is the sensor file of a ways side.
func (s side) sensor(to string) string {
	dispatch := fmt.Sprintf("file: {path: %q, format: jsonl}", to)
	if s.http {
		dispatch = fmt.Sprintf("http: {url: %q}", to)
	}
	var selected []string
	for _, section := range sections().List() {
		selected = append(selected, section.String())
	}
	return fmt.Sprintf(`spec: 1
kind: ways
name: peer
description: The one rule that is measured.
enabled: true
rules:
  - name: all
    enabled: true
    sections: [%s]
    dispatch:
      %s
    mode: async
    # A best-effort rule drops what is over its queue; here all of it waits at once.
    queue: 1000000
    delivery: %s
    redact: %s
`, strings.Join(selected, ", "), dispatch, s.delivery, s.redact)
}

// arguments are the Collector's for a side of it.
func (s side) arguments(configs string) []string {
	var args []string
	for _, name := range s.configs {
		args = append(args, "--config", "file:"+filepath.Join(configs, name))
	}
	if s.synchronous {
		args = append(args, "--feature-gates", gate)
	}
	return args
}
