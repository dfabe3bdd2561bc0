package exposition

import (
	"fmt"
	"strings"
)

// Reference is the page docs/metrics.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Metrics

<!-- Made from the tables in metrics/exposition. Change those, then run:
     go test ./metrics/exposition -run Reference -update -->

` + "`ways metrics`" + ` prints what was counted since installation, over all sessions, in the Prometheus text format;
` + "`ways metrics serve`" + ` answers scrapes ([both verbs](cli.md#ways-metrics)).

## Scraping

Run the server as a service of your account, with the [systemd user unit](ways-metrics.service) or the
[launchd agent](local.ways.metrics.plist), whose comments say how to install them, and let Prometheus ask it:

    scrape_configs:
      - job_name: ways
        static_configs:
          - targets: ['127.0.0.1:9464']

It listens on the loopback interface alone, and refuses another address without ` + "`--allow-remote`" + `: there is no
password. It speaks the text format, OpenMetrics and protobuf, whichever is asked for.

Where the node exporter runs anyway, its textfile collector does without a server; have a timer run

    ways metrics --output /srv/node-exporter/textfile/ways.prom

The file is replaced in one step.

[grafana-dashboard.json](grafana-dashboard.json) is a dashboard to import, [alerts.yaml](alerts.yaml) holds alert rules for
Prometheus' ` + "`rule_files`" + `.

## What the numbers are

- A counter is the sum over all sessions since installation. It lives in the state directory, past the end of its
  session and past the death of whichever process, and never goes backwards. What a dispatcher counts is on the disk
  within a second, and before the positions that say a record is done with; so a dispatcher that is killed may have
  handed a record out that is handed out and counted again, and has none that is counted nowhere.
- Removing the state directory, or ` + "`totals.json`" + ` in it, begins anew at zero.
- A gauge is of the moment of the scrape.
- Labels are the sensor, the rule and words from fixed lists: never a session, a project or text. A name that is not
  plain (letters, digits, ` + "`_ - . :`" + `) counts under ` + "`other`" + `. Reasons are put together: ` + "`status_5xx`" + `, ` + "`exit`" + `, ` + "`signal`" + `.
- Histograms are native ones (schema 3: buckets 9 % wide), with classic buckets beside them whose bounds are powers of
  two of a second, from 1/8192 s to 1024 s, read off the native ones exactly. Prometheus takes the native ones when it
  is told to (` + "`scrape_native_histograms`" + `, in older versions ` + "`--enable-feature=native-histograms`" + `).
- Hooks that find no rule for their event leave no trace, so ` + "`ways_hook_events_total`" + ` counts the events that some
  rule wanted.

A rate for each rule, and what share of its records arrives:

    sum by (sensor, rule) (rate(ways_records_delivered_total[5m]))
    sum by (sensor, rule) (rate(ways_records_delivered_total[1h])) / sum by (sensor, rule) (rate(ways_records_matched_total[1h]))

## The metrics

| metric | type | labels | meaning |
| --- | --- | --- | --- |
`)
	for _, m := range Metrics() {
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels, m.Help)
	}
	return b.String()
}
