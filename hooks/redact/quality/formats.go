package quality

// Format is a service's secret as its documentation shows it. The pattern is
// text with gaps: {A36} is 36 letters and digits, {h32} hexadecimal, {U16}
// capitals and digits, {w20-40} letters, digits, dash and underscore, {g1} a UUID.
type Format struct {
	Service string
	Pattern string
}

// Tokens lists tokens with a format that shows what they are.
func Tokens() []Format {
	return []Format{
		{"1password", "ops_eyJ{A260}"}, {"adobe", "p8e-{a32}"}, {"age", "AGE-SECRET-KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE"},
		{"alibaba", "LTAI{A20}"}, {"anthropic", "sk-ant-api03-{w93}AA"}, {"anthropic-admin", "sk-ant-admin01-{w93}AA"}, {"anthropic-oauth", "sk-ant-oat01-{w93}AA"},
		{"artifactory", "AKCp{A69}"}, {"aws", "AKIA{216}"}, {"aws-sts", "ASIA{216}"}, {"aws-bedrock", "ABSK{b130}"}, {"airtable", "pat{A14}.{h64}"},
		{"atlassian", "ATATT3{w186}"}, {"bitbucket-app", "ATBB{A32}"}, {"trello", "ATTA{h64}"}, {"brave", "BSA{w27}"}, {"brevo", "xkeysib-{h64}-{A16}"}, {"brevo-smtp", "xsmtpsib-{h64}-{A16}"},
		{"buildkite", "bkua_{h40}"}, {"cerebras", "csk-{a48}"}, {"circleci", "CCIPAT_{A22}_{h40}"}, {"clickhouse", "4b1d{A38}"}, {"clickup", "pk_{d8}_{U32}"}, {"clojars", "CLOJARS_{a60}"},
		{"cockroach", "CCDB1_{A22}_{A40}"}, {"contentful", "CFPAT-{w43}"}, {"crates", "cio{A32}"}, {"databricks", "dapi{h32}"}, {"dbt", "dbtc_{w36}"},
		{"digitalocean", "dop_v1_{h64}"}, {"digitalocean-oauth", "doo_v1_{h64}"}, {"digitalocean-refresh", "dor_v1_{h64}"}, {"discord", "{D18}.{w6}.{w30}"}, {"docker", "dckr_pat_{w27}"}, {"docker-swarm", "SWMTKN-1-{a50}-{a25}"},
		{"doppler", "dp.pt.{A43}"}, {"doppler-service", "dp.st.{A43}"}, {"duffel", "duffel_live_{w43}"}, {"dynatrace", "dt0c01.{U24}.{U64}"}, {"e2b", "e2b_{h40}"}, {"easypost", "EZAK{A54}"},
		{"elevenlabs", "sk_{h48}"}, {"facebook", "EAAC{A150}"}, {"figma", "figd_{w40}"}, {"firecrawl", "fc-{h32}"}, {"fireworks", "fw_{A24}"}, {"fly", "fo1_{w43}"}, {"fly-macaroon", "fm2_{b140}"},
		{"flutterwave", "FLWSECK-{h32}-X"}, {"frameio", "fio-u-{w64}"}, {"gcp", "AIza{w35}"}, {"gcp-oauth", "GOCSPX-{w28}"}, {"google-access", "ya29.{w120}"}, {"google-refresh", "1//0{w60}"},
		{"github", "ghp_{A36}"}, {"github-oauth", "gho_{A36}"}, {"github-user", "ghu_{A36}"}, {"github-server", "ghs_{A36}"}, {"github-refresh", "ghr_{A36}"}, {"github-fine", "github_pat_{A22}_{A59}"},
		{"gitlab", "glpat-{w20}"}, {"gitlab-routable", "glpat-{w27}.{a2}{a7}"}, {"gitlab-deploy", "gldt-{w20}"}, {"gitlab-runner", "glrt-{w20}"}, {"gitlab-trigger", "glptt-{h40}"}, {"gitlab-feed", "glft-{w20}"}, {"gitlab-oauth", "gloas-{w64}"}, {"gitlab-agent", "glagent-{w50}"}, {"gitlab-scim", "glsoat-{w20}"}, {"gitlab-mail", "glimt-{w25}"}, {"gitlab-job", "glcbt-{A2}_{w20}"}, {"gitlab-registration", "GR1348941{w20}"},
		{"grafana", "glsa_{A32}_{h8}"}, {"grafana-cloud", "glc_{A80}"}, {"groq", "gsk_{A52}"}, {"harness", "pat.{w22}.{A24}.{A20}"}, {"helicone", "sk-helicone-{a7}-{a7}-{a7}-{a7}"}, {"heroku", "HRKU-AA{w58}"}, {"honeycomb", "hcaik_{a58}"},
		{"hubspot", "pat-na1-{g1}"}, {"huggingface", "hf_{L34}"}, {"infracost", "ico-{A32}"}, {"infisical", "st.{h24}.{h32}.{h32}"}, {"instagram", "IGQV{A120}"}, {"jetbrains", "perm:{A12}.{A20}.{A30}"}, {"jina", "jina_{A60}"},
		{"langfuse", "sk-lf-{g1}"}, {"langsmith", "lsv2_pt_{h32}_{h10}"}, {"launchdarkly", "sdk-{g1}"}, {"linear", "lin_api_{A40}"}, {"mailgun", "key-{h32}"}, {"mapbox", "sk.eyJ{A80}.{A22}"}, {"maxmind", "{A6}_{A29}_mmk"}, {"mongodb-atlas", "mdb_sa_sk_{w40}"},
		{"neon", "napi_{a64}"}, {"netlify", "nfp_{A36}"}, {"newrelic", "NRAK-{U27}"}, {"notion", "ntn_{d11}{A35}"}, {"notion-old", "secret_{A43}"}, {"npm", "npm_{A36}"}, {"nuget", "oy2{a43}"}, {"nvidia", "nvapi-{w64}"},
		{"octopus", "API-{U26}"}, {"onesignal", "os_v2_app_{a80}"}, {"openai", "sk-proj-{w74}T3BlbkFJ{w74}"}, {"openai-old", "sk-{A20}T3BlbkFJ{A20}"}, {"openai-service", "sk-svcacct-{w74}T3BlbkFJ{w74}"}, {"openrouter", "sk-or-v1-{h64}"}, {"openshift", "sha256~{w43}"},
		{"paypal", "access_token$production${a16}${h32}"}, {"perplexity", "pplx-{A48}"}, {"pinecone", "pcsk_{A6}_{A63}"}, {"plaid", "access-production-{g1}"}, {"planetscale", "pscale_tkn_{w43}"}, {"planetscale-pw", "pscale_pw_{w43}"}, {"posthog", "phx_{A43}"}, {"postman", "PMAK-{h24}-{h34}"}, {"prefect", "pnu_{A36}"}, {"pulumi", "pul-{h40}"}, {"pypi", "pypi-AgEIcHlwaS5vcmc{w100}"},
		{"razorpay", "rzp_live_{A14}"}, {"readme", "rdme_{a70}"}, {"render", "rnd_{A32}"}, {"replicate", "r8_{A37}"}, {"resend", "re_{A8}_{A24}"}, {"rubygems", "rubygems_{h48}"}, {"runpod", "rpa_{U46}"},
		{"scalingo", "tk-us-{w48}"}, {"sendgrid", "SG.{w22}.{w43}"}, {"sentry", "sntryu_{h64}"}, {"shippo", "shippo_live_{h40}"}, {"shopify", "shpat_{h32}"}, {"shopify-app", "shpss_{h32}"}, {"slack-bot", "xoxb-{d12}-{d13}-{A24}"}, {"slack-user", "xoxp-{d12}-{d12}-{d12}-{h32}"}, {"slack-app", "xapp-1-A{U10}-{d13}-{h64}"}, {"slack-cookie", "xoxd-{A80}"}, {"slack-webhook", "https://hooks.slack.com/services/T{U10}/B{U10}/{A24}"}, {"discord-webhook", "https://discord.com/api/webhooks/{d18}/{w68}"},
		{"sonar", "squ_{h40}"}, {"sourcegraph", "sgp_{h16}_{h40}"}, {"square", "EAAA{w60}"}, {"square-secret", "sq0csp-{w43}"}, {"statsig", "secret-{A43}"}, {"stripe", "sk_live_{A24}"}, {"stripe-long", "sk_live_51{A97}"}, {"stripe-restricted", "rk_live_{A24}"}, {"stripe-webhook", "whsec_{A32}"}, {"stytch", "secret-live-{w46}="}, {"supabase", "sbp_{h40}"},
		{"tailscale", "tskey-auth-{A12}CNTRL-{A32}"}, {"tavily", "tvly-{A32}"}, {"telegram", "bot{d10}:AA{w33}"}, {"tencent", "AKID{A32}"}, {"terraform", "{A14}.atlasv1.{w67}"}, {"together", "tgp_v1_{w43}"}, {"twilio", "SK{h32}"}, {"typeform", "tfp_{w40}_{w18}"},
		{"vault", "hvs.{w95}"}, {"vault-batch", "hvb.{w150}"}, {"vercel", "vcp_{A56}"}, {"voyage", "pa-{w43}"}, {"wandb", "wandb_v1_{A60}"}, {"woocommerce", "ck_{h40}"}, {"xai", "xai-{A80}"}, {"axiom", "xaat-{g1}"}, {"apify", "apify_api_{A36}"}, {"teams", "https://acme.webhook.office.com/webhookb2/{g1}@{g1}/IncomingWebhook/{h32}/{g1}"},
	}
}

// Assigned lists secrets that only the name they are assigned to gives away.
func Assigned() []Format {
	return []Format{
		{"adafruit", "{a32}"}, {"algolia", "{h32}"}, {"amplitude", "{h32}"}, {"asana", "{h32}"}, {"assemblyai", "{h32}"}, {"auth0", "{w64}"}, {"azure", "{h32}"}, {"binance", "{A64}"}, {"bitbucket", "{A32}"}, {"box", "{A32}"}, {"bugsnag", "{h32}"},
		{"cloudflare", "{w40}"}, {"cloudinary", "{w27}"}, {"codecov", "{g1}"}, {"cohere", "{A40}"}, {"coinbase", "{A64}"}, {"confluent", "{b64}"}, {"contentful", "{w43}"}, {"datadog", "{h32}"}, {"datadog", "{h40}"}, {"deepgram", "{h40}"}, {"deepl", "{g1}:fx"}, {"deepseek", "sk-{h32}"}, {"discord", "{w32}"}, {"dropbox", "{a15}"}, {"etherscan", "{U34}"}, {"etsy", "{a24}"}, {"exa", "{g1}"},
		{"fastly", "{w32}"}, {"finnhub", "{a20}"}, {"flickr", "{h32}"}, {"freshbooks", "{h64}"}, {"freshdesk", "{A20}"}, {"gitter", "{h40}"}, {"heroku", "{g1}"}, {"hetzner", "{A64}"}, {"hubspot", "{g1}"}, {"infura", "{h32}"}, {"intercom", "{w60}"}, {"jenkins", "11{h32}"}, {"kraken", "{b88}"}, {"kucoin", "{h24}"},
		{"launchdarkly", "{w40}"}, {"linkedin", "{A16}"}, {"linode", "{h64}"}, {"looker", "{A24}"}, {"mailchimp", "{h32}-us21"}, {"mapquest", "{A32}"}, {"mattermost", "{a26}"}, {"messagebird", "{A25}"}, {"mistral", "{A32}"}, {"mixpanel", "{h32}"}, {"netlify", "{w43}"}, {"nytimes", "{A32}"}, {"okta", "00{w40}"}, {"openweather", "{h32}"}, {"opsgenie", "{g1}"},
		{"pagerduty", "{w20}"}, {"plaid", "{h30}"}, {"postmark", "{g1}"}, {"pusher", "{h20}"}, {"rapidapi", "{a50}"}, {"rollbar", "{h32}"}, {"scaleway", "{g1}"}, {"segment", "{A32}"}, {"sendbird", "{h40}"}, {"sentry", "{h64}"}, {"serpapi", "{h64}"}, {"shodan", "{A32}"}, {"snyk", "{g1}"}, {"spotify", "{h32}"}, {"squarespace", "{g1}"}, {"sumologic", "{A64}"}, {"todoist", "{h40}"},
		{"travis", "{A22}"}, {"twilio", "{h32}"}, {"twitch", "{a30}"}, {"twitter", "{A45}"}, {"twitter", "{A50}"}, {"virustotal", "{h64}"}, {"vultr", "{U36}"}, {"yandex", "AQVN{w37}"}, {"zendesk", "{A40}"}, {"zoom", "{A32}"}, {"wandb", "{h40}"}, {"aws_secret_access", "{b40}"},
	}
}
