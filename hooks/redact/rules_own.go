package redact

// ownRules returns our own pattern rules: what gitleaks' rules do not know,
// written from the formats that the services document.
func ownRules() []rule {
	formats := ownFormats()
	list := make([]rule, 0, len(formats)+8)
	for _, f := range formats {
		list = append(list, rule{
			id: f.id, mode: modePrefix, keywords: f.keywords, exact: true, word: true,
			regex: `^(?:(` + f.regex + `))(?:[^\w-]|$)`, minLen: f.least, after: f.most + 4, entropy: f.entropy,
		})
	}
	return append(append(list, ownWindows()...), commandRules()...)
}

// A format is a token that begins with a fixed text and is at least least and
// at most most bytes long.
type format struct {
	id          string
	keywords    []string
	regex       string
	least, most int
	entropy     float64
}

func ownFormats() []format {
	one := func(s ...string) []string { return s }
	return []format{
		// Models and their tooling.
		{"openrouter-api-key", one("sk-or-"), `sk-or-(?:v\d-)?[0-9a-f]{64}`, 70, 73, 0},
		{"anthropic-key", one("sk-ant-"), `sk-ant-[a-z0-9]{2,12}-[\w-]{20,160}`, 30, 180, 3},
		{"openai-project-key", one("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-service-"), `sk-(?:proj|svcacct|admin|service)-[\w-]{20,200}`, 28, 212, 3.5},
		{"openai-legacy-key", one("sk-"), `sk-[A-Za-z0-9]{32,64}`, 35, 68, 3.5},
		{"groq-api-key", one("gsk_"), `gsk_[A-Za-z0-9]{48,56}`, 52, 60, 3},
		{"xai-api-key", one("xai-"), `xai-[A-Za-z0-9]{70,90}`, 74, 94, 3},
		{"replicate-api-token", one("r8_"), `r8_[A-Za-z0-9]{37}`, 40, 40, 3},
		{"huggingface-token", one("hf_"), `hf_[A-Za-z0-9]{30,40}`, 33, 43, 3},
		{"langsmith-api-key", one("lsv2_"), `lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}`, 51, 51, 0},
		{"langfuse-secret-key", one("sk-lf-"), `sk-lf-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}`, 42, 42, 0},
		{"pinecone-api-key", one("pcsk_"), `pcsk_[A-Za-z0-9]{5,6}_[A-Za-z0-9]{60,70}`, 70, 84, 3},
		{"tavily-api-key", one("tvly-"), `tvly-(?:dev-|prod-)?[A-Za-z0-9-]{28,60}`, 33, 70, 3},
		{"firecrawl-api-key", one("fc-"), `fc-[0-9a-f]{32}`, 35, 35, 3},
		{"elevenlabs-api-key", one("sk_"), `sk_[0-9a-f]{48}`, 51, 51, 3},
		{"cerebras-api-key", one("csk-"), `csk-[a-z0-9]{48}`, 52, 52, 3},
		{"fireworks-api-key", one("fw_"), `fw_[A-Za-z0-9]{22,28}`, 25, 31, 3.5},
		{"together-api-key", one("tgp_v1_"), `tgp_v1_[\w-]{40,50}`, 47, 57, 3},
		{"nvidia-api-key", one("nvapi-"), `nvapi-[\w-]{60,70}`, 66, 76, 3},
		{"voyage-api-key", one("pa-"), `pa-[\w-]{43}`, 46, 46, 4},
		{"jina-api-key", one("jina_"), `jina_[A-Za-z0-9]{58,64}`, 63, 69, 3},
		{"helicone-api-key", one("sk-helicone-"), `sk-helicone-[a-z0-9]{7}-[a-z0-9]{7}-[a-z0-9]{7}-[a-z0-9]{7}`, 43, 43, 3},
		{"runpod-api-key", one("rpa_"), `rpa_[A-Z0-9]{40,50}`, 44, 54, 3},
		{"modal-token", one("ak-", "as-"), `a[ks]-[A-Za-z0-9]{22}`, 25, 25, 3.8},
		{"e2b-api-key", one("e2b_"), `e2b_[0-9a-f]{40}`, 44, 44, 3},
		{"letta-api-key", one("sk-let-"), `sk-let-[A-Za-z0-9+/=]{60,140}`, 67, 147, 3},
		{"kimi-api-key", one("sk-kimi-"), `sk-kimi-[\w-]{32,120}`, 40, 130, 3},

		// Clouds and hosting.
		{"aws-temporary-key", one("ASIA"), `ASIA[A-Z0-9]{16}`, 20, 20, 3},
		{"google-oauth-secret", one("GOCSPX-"), `GOCSPX-[\w-]{28}`, 35, 35, 3},
		{"google-oauth-token", one("ya29."), `ya29\.[\w-]{30,512}`, 35, 520, 3},
		{"google-refresh-token", one("1//0"), `1//0[\w-]{40,128}`, 44, 132, 3.5},
		{"google-ai-key", one("AQ."), `AQ\.[\w-]{40,60}`, 43, 63, 4},
		{"netlify-token", one("nfp_", "nfc_", "nfo_", "nfu_", "nfb_"), `nf[pcoub]_[A-Za-z0-9]{36}`, 40, 40, 3},
		{"supabase-token", one("sbp_"), `sbp_(?:v0_|oauth_)?[0-9a-f]{40}`, 44, 50, 3},
		{"supabase-secret-key", one("sb_secret_"), `sb_secret_[\w-]{20,60}`, 30, 70, 3},
		{"render-api-key", one("rnd_"), `rnd_[A-Za-z0-9]{28,40}`, 32, 44, 3},
		{"vercel-token", one("vcp_", "vci_", "vca_", "vcr_", "vck_"), `vc[pciark]_[A-Za-z0-9]{24,80}`, 28, 84, 3},
		{"vercel-blob-token", one("vercel_blob_rw_"), `vercel_blob_rw_[A-Za-z0-9]{12,24}_[A-Za-z0-9]{24,40}`, 50, 80, 3},
		{"fly-token", one("FlyV1 "), `FlyV1 fm\d[a-z]?_[A-Za-z0-9+/=,_]{80,700}`, 90, 720, 3},
		{"neon-api-key", one("napi_"), `napi_[a-z0-9]{60,70}`, 65, 75, 3},
		{"cockroach-api-key", one("CCDB1_"), `CCDB1_[A-Za-z0-9]{22}_[A-Za-z0-9]{40}`, 69, 69, 3},
		{"mongodb-atlas-secret", one("mdb_sa_sk_"), `mdb_sa_sk_[\w-]{40}`, 50, 50, 3},
		{"aiven-token", one("AVNS_"), `AVNS_[\w-]{19,24}`, 24, 29, 3},
		{"tencent-secret-id", one("AKID"), `AKID[A-Za-z0-9]{32}`, 36, 36, 3.5},
		{"heroku-token", one("HRKU-"), `HRKU-[\w-]{36,64}`, 41, 69, 3},
		{"railway-token", one("rw_Fe26."), `rw_Fe26\.[\w*.~-]{60,400}`, 68, 410, 3},
		{"elastic-api-key", one("essu_"), `essu_[A-Za-z0-9+/=]{40,120}`, 45, 125, 3},
		{"dbt-token", one("dbtc_", "dbtu_", "dbts_"), `dbt[cus]_[\w-]{36,64}`, 41, 69, 3},

		// Code, packages, builds.
		{"github-server-token", one("ghs_"), `ghs_[\w.-]{36,520}`, 40, 524, 3},
		{"gitlab-token", one("glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glsoat-", "gloas-", "glimt-", "glagent-", "glwt-", "glrtr-", "glffct-"), `gl(?:pat|dt|rtr|rt|ptt|ft|soat|oas|imt|agent|wt|ffct)-[\w-]{20,300}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7})?`, 24, 330, 3},
		{"bitbucket-app-password", one("ATBB"), `ATBB[A-Za-z0-9]{32}`, 36, 36, 3},
		{"atlassian-token", one("ATATT3", "ATCTT3", "ATSTT3"), `AT[ACS]TT3[\w=-]{60,260}(?:=[0-9A-F]{8})?`, 66, 275, 3},
		{"trello-token", one("ATTA"), `ATTA[0-9a-f]{64,80}`, 68, 84, 3},
		{"circleci-token", one("CCIPAT_", "CCIPRJ_"), `CCIP(?:AT|RJ)_[A-Za-z0-9]{20,24}_[0-9a-f]{40}`, 68, 74, 3},
		{"buildkite-token", one("bkua_", "bkaj_", "bkat_", "bkpt_", "bkct_"), `bk(?:ua|aj|at|pt|ct)_[A-Za-z0-9]{40,64}`, 45, 69, 3},
		{"sonar-token", one("squ_", "sqp_", "sqa_"), `sq[upa]_[0-9a-f]{40}`, 44, 44, 3},
		{"nuget-api-key", one("oy2"), `oy2[a-z0-9]{43}`, 46, 46, 3},
		{"crates-io-token", one("cio"), `cio[A-Za-z0-9]{32}`, 35, 35, 3.8},
		{"docker-token", one("dckr_pat_", "dckr_oat_"), `dckr_[po]at_[\w-]{27,40}`, 36, 50, 3},
		{"docker-swarm-token", one("SWMTKN-1-"), `SWMTKN-1-[a-z0-9]{50}-[a-z0-9]{25}`, 85, 85, 3},
		{"jetbrains-token", one("perm:", "perm-"), `perm[:-][A-Za-z0-9+/=]{4,80}\.[A-Za-z0-9+/=]{4,80}\.[A-Za-z0-9+/=]{20,80}`, 35, 250, 3},
		{"snyk-token", one("snyk_"), `snyk_(?:uat|sat)\.[0-9a-f]{8}\.[\w.-]{40,400}`, 57, 420, 3},
		{"infisical-token", one("st."), `st\.[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{32}`, 93, 93, 3},
		{"doppler-token", one("dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."), `dp\.(?:st(?:\.[\w-]{2,35})?|ct|sa|scim|audit)\.[A-Za-z0-9]{40,44}`, 46, 92, 3},
		{"vault-token", one("hvs.", "hvr.", "hvb."), `hv[srb]\.[\w-]{24,300}`, 28, 304, 3},
		{"tailscale-key", one("tskey-"), `tskey-[a-z]+-[A-Za-z0-9]{8,24}(?:-[A-Za-z0-9]{16,48})?`, 16, 90, 3},
		{"rancher-token", one("token-"), `token-[a-z0-9]{5}:[a-z0-9]{54}`, 66, 66, 3},
		{"terraform-token-part", one("atlasv1."), `atlasv1\.[\w-]{60,70}`, 68, 78, 3},
		{"sourcegraph-token", one("sgp_", "slk_", "sgd_"), `(?:sgp|slk|sgd)_[A-Za-z0-9_]{40,80}`, 44, 84, 3},
		{"typeform-token", one("tfp_"), `tfp_[\w.=-]{40,64}`, 44, 68, 3},
		{"deno-token", one("ddp_", "ddo_"), `dd[po]_[A-Za-z0-9]{36}`, 40, 40, 3},
		{"convex-key", one("prod:", "dev:"), `(?:prod|dev):[a-z]+-[a-z]+-\d{1,4}\|[A-Za-z0-9+/=]{40,140}`, 50, 180, 3},
		{"unkey-token", one("unkey_"), `unkey_[A-Za-z0-9]{20,40}`, 26, 46, 3},

		// Money.
		{"stripe-webhook-secret", one("whsec_"), `whsec_[A-Za-z0-9+/=]{24,64}`, 30, 70, 3},
		{"paypal-access-token", one("access_token$"), `access_token\$(?:production|sandbox)\$[a-z0-9]{13,20}\$[0-9a-f]{32}`, 60, 90, 3},
		{"square-secret", one("sq0csp-", "sq0idp-"), `sq0(?:csp|idp)-[\w-]{22,50}`, 29, 57, 3},
		{"razorpay-key", one("rzp_live_", "rzp_test_"), `rzp_(?:live|test)_[A-Za-z0-9]{14,24}`, 23, 33, 3},
		{"woocommerce-key", one("ck_", "cs_"), `c[ks]_[0-9a-f]{40}`, 43, 43, 3},
		{"adyen-api-key", one("AQE"), `AQE[mhy][A-Za-z0-9+/=]{60,400}`, 64, 410, 4},
		{"flutterwave-key", one("FLWSECK-", "FLWSECK_"), `FLWSECK(?:_TEST)?-[A-Za-z0-9]{20,40}(?:-X)?`, 28, 60, 3},
		{"mercadopago-token", one("APP_USR-", "TEST-"), `(?:APP_USR|TEST)-\d{12,20}-\d{6}-[0-9a-f]{32}-\d{5,12}`, 60, 90, 3},
		{"plaid-token", one("access-sandbox-", "access-development-", "access-production-"), `access-(?:sandbox|development|production)-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}`, 51, 56, 0},
		{"paddle-key", one("pdl_"), `pdl_(?:live|sdbx)_(?:apikey|client)?_?[A-Za-z0-9_]{30,80}`, 39, 100, 3},

		// Messages, mail, support.
		{"slack-token", one("xoxc-", "xoxd-", "xoxp-", "xoxb-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe."), `xox[a-z](?:\.xox[bp])?-[A-Za-z0-9%+/=-]{20,400}`, 25, 420, 2.5},
		{"slack-app-level-token", one("xapp-"), `xapp-\d-[A-Z0-9]{8,14}-\d{8,16}-[a-f0-9]{32,64}`, 55, 110, 3},
		{"mailgun-key", one("key-"), `key-[0-9a-f]{32}`, 36, 36, 3},
		{"resend-api-key", one("re_"), `re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,28}`, 32, 40, 3.5},
		{"brevo-smtp-key", one("xsmtpsib-", "xkeysib-"), `x(?:smtp|key)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}`, 89, 92, 3},
		{"sendgrid-key", one("SG."), `SG\.[\w-]{16,32}\.[\w-]{32,64}`, 52, 102, 3},
		{"twilio-account-sid", one("AC"), `AC[0-9a-f]{32}`, 34, 34, 3},
		{"onesignal-key", one("os_v2_"), `os_v2_(?:app|org)_[a-z0-9]{60,120}`, 70, 130, 3},
		{"telegram-token", one("bot"), `bot\d{8,10}:AA[\w-]{33}`, 46, 51, 3},
		{"mandrill-key", one("md-"), `md-[A-Za-z0-9_-]{22}`, 25, 25, 3.8},
		{"intercom-token", one("dG9rO"), `dG9rO[A-Za-z0-9+/=]{40,80}`, 45, 85, 3},
		{"courier-key", one("pk_prod_", "dk_prod_"), `[pd]k_prod_[A-Z0-9]{28}`, 36, 36, 3},

		// Work and content.
		{"figma-token", one("figd_", "figo_", "figu_"), `fig[dou]_[\w-]{36,60}`, 41, 65, 3},
		{"notion-token", one("secret_", "ntn_"), `(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,50})`, 44, 54, 3.5},
		{"airtable-token", one("pat"), `pat[A-Za-z0-9]{14}\.[a-f0-9]{64}`, 82, 82, 3},
		{"linear-token", one("lin_oauth_", "lin_wh_"), `lin_(?:oauth|wh)_[A-Za-z0-9]{32,64}`, 39, 74, 3},
		{"clickup-token", one("pk_"), `pk_\d{6,9}_[A-Z0-9]{32}`, 42, 45, 3},
		{"asana-token", one("0/", "1/", "2/"), `[012]/\d{13,17}(?:/\d{13,17})?:[0-9a-f]{32}`, 48, 70, 3},
		{"contentful-token", one("CFPAT-"), `CFPAT-[\w-]{43}`, 49, 49, 3},
		{"hubspot-token", one("pat-na", "pat-eu", "pat-ap"), `pat-(?:na|eu|ap)\d-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}`, 44, 44, 0},
		{"salesforce-token", one("00D"), `00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{80,120}`, 96, 140, 3},
		{"posthog-key", one("phx_", "phs_", "phr_", "pha_"), `ph[xsra]_[A-Za-z0-9]{40,50}`, 44, 54, 3},
		{"honeycomb-key", one("hcaik_", "hcbik_", "hcxik_", "hcamk_"), `hc(?:aik|bik|xik|amk)_[a-z0-9]{40,70}`, 46, 76, 3},
		{"axiom-token", one("xaat-", "xapt-"), `xa(?:at|pt)-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}`, 41, 41, 0},
		{"sentry-token", one("sntrys_", "sntryu_"), `sntry[su]_[A-Za-z0-9+/=_-]{40,400}`, 47, 410, 3},
		{"newrelic-key", one("NRAK-", "NRJS-", "NRII-", "NRRA-", "NRAA-"), `NR(?:AK|JS|II|RA|AA)-[A-Za-z0-9-]{19,42}`, 24, 48, 3},
		{"grafana-token", one("glsa_", "glc_"), `(?:glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/=]{40,400})`, 44, 410, 3},
		{"statsig-key", one("secret-"), `secret-[A-Za-z0-9]{40,50}`, 47, 57, 3.5},
		{"stytch-secret", one("secret-live-", "secret-test-"), `secret-(?:live|test)-[\w=-]{36,60}`, 48, 72, 3},
		{"launchdarkly-key", one("sdk-", "api-", "mob-"), `(?:sdk|api|mob)-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}`, 40, 40, 0},
		{"mapbox-secret-token", one("sk.eyJ"), `sk\.eyJ[\w-]{40,120}\.[\w-]{20,40}`, 66, 170, 3},
		{"shopify-token", one("shpua_", "shptka_", "shpit_"), `shp(?:ua|tka|it)_[0-9a-f]{32}`, 38, 40, 3},
		{"facebook-token", one("EAA"), `EAA[A-Za-z0-9]{80,300}`, 83, 304, 4},
		{"instagram-token", one("IGQV", "IGAA"), `IG(?:QV|AA)[A-Za-z0-9_-]{80,300}`, 84, 304, 4},
		{"twitch-token", one("oauth:"), `oauth:[a-z0-9]{30}`, 36, 36, 3},
		{"duffel-token", one("duffel_live_", "duffel_test_"), `duffel_(?:live|test)_[\w-]{43}`, 55, 55, 3},
		{"openai-session-key", one("sess-"), `sess-[A-Za-z0-9]{40}`, 45, 45, 3.5},
		{"wandb-token", one("wandb_v1_"), `wandb_v1_[A-Za-z0-9_]{40,90}`, 49, 100, 3},
		{"apify-token", one("apify_api_"), `apify_api_[A-Za-z0-9]{36}`, 46, 46, 3},
		{"browserbase-key", one("bb_live_", "bb_test_"), `bb_(?:live|test)_[\w-]{24,40}`, 32, 48, 3},
		{"brave-search-key", one("BSA"), `BSA[A-Za-z0-9_-]{27,28}`, 30, 31, 3.8},
		{"jenkins-token", one("11"), `11[0-9a-f]{32}`, 34, 34, 3},
		{"retool-token", one("retool_"), `retool_[a-z0-9]{26}`, 33, 33, 3},
	}
}

// ownWindows returns the rules whose fixed text is not at the beginning.
func ownWindows() []rule {
	return []rule{
		// The first part is the base64 of a number, which has ten beginnings.
		{id: "discord-bot-token", mode: modePrefix, exact: true, word: true, keywords: []string{"MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"}, regex: `^([MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40})(?:[^\w-]|$)`, minLen: 58, after: 80, entropy: 3},
		{id: "discord-webhook", mode: modeWindow, keywords: []string{"/api/webhooks/"}, regex: `(?i)https?://(?:\w+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{16,20}/[\w-]{60,80}`, before: 40, after: 120},
		{id: "slack-webhook", mode: modeWindow, keywords: []string{"hooks.slack.com"}, regex: `hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,90})`, after: 120},
		{id: "azure-storage-key", mode: modePrefix, keywords: []string{"accountkey=", "sharedaccesskey="}, regex: `^(?i:accountkey|sharedaccesskey)=([A-Za-z0-9+/]{40,100}={0,2})`, minLen: 51, after: 130},
		{id: "azure-devops-pat", mode: modeWindow, keywords: []string{"azdo"}, regex: `\b([A-Za-z0-9]{70,80}AZDO[A-Za-z0-9]{4})\b`, before: 82, after: 8, entropy: 3},
		{id: "signed-url", mode: modePrefix, keywords: []string{"sig=", "signature=", "x-amz-security-token="}, regex: `^(?i:sig|signature|x-amz-security-token)=([\w%+/=.~-]{20,1000})`, minLen: 24, after: 1040, entropy: 3},
		{id: "nuget-password", mode: modeNear, keywords: []string{"cleartextpassword", `key="password"`}, regex: `(?i)<add key="(?:cleartext)?password"\s{0,8}value="([^"\n]{8,200})"`, before: 12, after: 240},
		{id: "database-identified-by", mode: modeNear, keywords: []string{"identified by"}, regex: `(?i)identified by\s{1,4}(?:password\s{1,4})?['"]([^'"\n]{3,128})['"]`, before: 1, after: 180},
		{id: "openssl-password", mode: modeNear, keywords: []string{"-passin pass:", "-passout pass:", "-pass pass:"}, regex: `-pass(?:in|out)? pass:([^\s'"\\$]{3,128})`, before: 1, after: 140},
		{id: "secret-body-option", mode: modeNear, keywords: []string{"secret set"}, regex: `secret set [^\n]{0,80}?(?:--body|-b)[ =]['"]?([^\s'"\\$]{4,200})`, before: 1, after: 300},
		{id: "auth-pair", mode: modeNear, keywords: []string{"auth=("}, regex: `auth=\(\s{0,4}['"][^'"\n\\]{1,80}['"],\s{0,4}['"]([^'"\n\\$]{3,128})['"]`, before: 1, after: 240},
		{id: "aws-secret-key", mode: modeNear, keywords: []string{"akia", "asia"}, regex: `(?:^|[^A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)`, before: 1, after: 180, entropy: 4.2},
		{id: "pgpass-password", mode: modeNear, keywords: []string{":5432:", ":5433:", ":6432:"}, regex: `:\d{4}:[^:\s'"]{1,63}:[^:\s'"]{1,63}:([^\s'":\\]{3,128})`, before: 1, after: 260},
		{id: "password-hash", mode: modePrefix, exact: true, keywords: []string{"$2a$", "$2b$", "$2y$", "$1$", "$5$", "$6$", "$y$", "$apr1$", "$argon2i"}, regex: `^(\$(?:2[aby]\$\d\d\$[./A-Za-z0-9]{53}|(?:[156y]|apr1)\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,24}\$[./A-Za-z0-9]{22,100}|argon2id?\$v=\d{1,3}\$[a-z0-9=,]{5,40}\$[A-Za-z0-9+/]{8,90}\$[A-Za-z0-9+/]{20,90}))`, minLen: 27, after: 260},
		{id: "pkcs8-key-body", mode: modeNear, keywords: []string{"IBADANBgkqhkiG9w0BAQEFAASC"}, regex: `\b(MII[A-Za-z0-9+/]{2,4}IBADANBgkqhkiG9w0BAQEFAASC[A-Za-z0-9+/=\s]{100,700})`, before: 12, after: 720},
		{id: "wireguard-key", mode: modeNear, keywords: []string{"privatekey = ", "presharedkey = "}, regex: `(?i:privatekey|presharedkey) = ([A-Za-z0-9+/]{43}=)`, before: 1, after: 64},
		{id: "facebook-app-token", mode: modePrefix, keywords: []string{"access_token="}, regex: `^access_token=(\d{13,17}\|[\w-]{20,45})`, minLen: 40, after: 90},
		{id: "firebase-server-key", mode: modePrefix, keywords: []string{"AAAA"}, exact: true, word: true, regex: `^(AAAA[\w-]{7}:[\w-]{130,160})`, minLen: 142, after: 180},
	}
}
