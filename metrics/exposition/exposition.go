// Package exposition gives what was counted to Prometheus: as text, and over HTTP
// in whichever format the server asks for. Labels are the sensor, the rule, and
// words from bounded lists; never a session, and never text that a session or a
// consumer made.
package exposition

import (
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"ways/metrics/counters"
)

// Snapshot is the state of an installation at one moment.
type Snapshot struct {
	Sum     counters.Sum
	Now     time.Time
	Version string
	// HookRefusals are the events that hooks did not take, by reason.
	HookRefusals map[string]uint64
	// DeadLetters are the records put aside and still there, by rule.
	DeadLetters map[string]int
	SpoolBytes  int64
	// Dispatchers run.
	Dispatchers int
}

// Write writes a snapshot in the text format.
func Write(w io.Writer, s Snapshot) error {
	families, err := gatherer(s).Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}

// maxScrapes bounds how many scrapes are answered at once.
const maxScrapes = 8

// Handler answers scrapes with a snapshot made for each; one that cannot be made
// is a 500 with the reason, and is told to failed.
func Handler(take func() (Snapshot, error), failed func(error)) http.Handler {
	return promhttp.HandlerFor(snapshots{take, failed}, promhttp.HandlerOpts{
		EnableOpenMetrics:   true,
		ErrorHandling:       promhttp.HTTPErrorOnError,
		MaxRequestsInFlight: maxScrapes,
	})
}

// snapshots gathers a new snapshot each time.
type snapshots struct {
	take   func() (Snapshot, error)
	failed func(error)
}

// Gather implements prometheus.Gatherer.
func (s snapshots) Gather() (families []*dto.MetricFamily, err error) {
	snap, err := s.take()
	if err == nil {
		families, err = gatherer(snap).Gather()
	}
	if err != nil {
		s.failed(err)
	}
	return families, err
}

// gatherer is a registry with one snapshot in it, which checks what is collected.
func gatherer(s Snapshot) prometheus.Gatherer {
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(collector{s}); err != nil {
		return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, err })
	}
	return r
}
