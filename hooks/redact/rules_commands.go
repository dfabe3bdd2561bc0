package redact

// commandRules are secrets that stand in a place of a command or a sentence, and
// have neither a name nor a format of their own.
func commandRules() []rule {
	const (
		echo = `(?:echo|printf)(?: -[ne])? ['"]?`
		word = `([^\s'"\\$|]{3,128})`
	)
	return []rule{
		{id: "docker-stdin-password", mode: modeNear, keywords: []string{"--password-stdin"}, regex: echo + word + `(?:\\n)?['"]? ?\| ?[^\n|]{0,120}--password-stdin`, before: 300, after: 1},
		{id: "sudo-password", mode: modeNear, keywords: []string{"sudo -s"}, regex: echo + word + `(?:\\n)?['"]? ?\| ?sudo -S`, before: 180, after: 1},
		{id: "chpasswd-password", mode: modeNear, keywords: []string{"chpasswd"}, regex: echo + `[\w.-]{1,32}:` + word + `(?:\\n)?['"]? ?\| ?(?:sudo )?chpasswd`, before: 220, after: 1},
		{id: "htpasswd-password", mode: modeNear, keywords: []string{"htpasswd -"}, regex: `htpasswd -(?:[a-zA-Z]{0,6}n[a-zA-Z]{0,6}|[a-zA-Z]{1,8} [^\s|;]{1,120}) [^\s|;]{1,64} ['"]?` + word, before: 1, after: 400},
		{id: "keystore-password", mode: modeNear, keywords: []string{"storepass ", "keypass "}, regex: `-(?:src|dest|new)?(?:store|key)pass ['"]?([^\s'"\\$|-][^\s'"\\$|]{2,128})`, before: 8, after: 150},
		{id: "ldap-password", mode: modeNear, keywords: []string{"ldapsearch ", "ldapadd ", "ldapmodify ", "ldapdelete ", "ldapwhoami ", "ldappasswd "}, regex: `ldap[a-z]{3,8} [^\n|]{0,200}?-w ['"]?` + word, before: 1, after: 360},
		{id: "smb-password", mode: modeNear, keywords: []string{"smbclient ", "rpcclient "}, regex: `(?:smb|rpc)client [^\n|]{0,200}?-U ?['"]?[^\s%'"]{1,64}%` + word, before: 1, after: 420},
		{id: "net-use-password", mode: modeNear, keywords: []string{"net use "}, regex: `(?i:net use) [^\n|]{0,120}?/(?i:user):[^\s]{1,80} ['"]?([^\s'"\\$|/][^\s'"\\$|]{2,128})`, before: 1, after: 380},
		{id: "powershell-password", mode: modeNear, keywords: []string{"convertto-securestring"}, regex: `(?i:ConvertTo-SecureString)(?: -(?i:String))? ['"]([^'"\n$]{3,128})['"]`, before: 1, after: 160},
		{id: "expect-password", mode: modeNear, keywords: []string{"send \"", "send -- \""}, regex: `expect [^\n]{0,40}(?i:pass)[^\n]{0,40}\n\s{0,8}send (?:-- )?"([^"\\\r\n$]{3,128})`, before: 160, after: 140},
		{id: "variable-command", mode: modeNear, keywords: []string{"setx ", "set -gx ", "set -ux ", "setenv "}, regex: `(?:setx|set -[gux]{2,3}|setenv) (?i:[a-z0-9_]{0,40}(?:pass|secret|token|key|pwd)[a-z0-9_]{0,40}) ['"]?([^\s'"\\$%]{8,200})`, before: 1, after: 320},
		{id: "docker-secret", mode: modeNear, keywords: []string{"secret create"}, regex: echo + word + `(?:\\n)?['"]? ?\| ?docker secret create`, before: 220, after: 1},
		{id: "archive-password", mode: modeNear, keywords: []string{"zip -p ", "7z a -p", "7z x -p", "unzip -p ", "rar a -hp", "rar a -p"}, regex: `(?:(?:un)?zip -P ['"]?|(?:7z|rar) [ax] -h?p['"]?)([^\s'"\\$|-][^\s'"\\$|]{5,128})`, before: 1, after: 150},
		{id: "database-option", mode: modeNear, keywords: []string{"sqlcmd ", "bcp "}, regex: `(?:sqlcmd|bcp) [^\n|]{0,200}?-P ?['"]?` + word, before: 1, after: 340},
		{id: "sqlplus-password", mode: modeNear, keywords: []string{"sqlplus "}, regex: `sqlplus (?:-[A-Za-z]{1,4} ){0,3}['"]?[\w$#]{1,64}/([^\s'"\\$@/]{3,128})@`, before: 1, after: 240},
		{id: "sql-password-function", mode: modeNear, keywords: []string{"password('", "password(\""}, regex: `(?i:password)\(['"]([^'"\n\\]{3,128})['"]\)`, before: 1, after: 150, entropy: 2.5},
		{id: "user-list-password", mode: modeNear, keywords: []string{"list: |\n"}, regex: `list: \|\n\s{1,16}[\w.-]{1,32}:([^\s'"\\$]{6,128})`, before: 1, after: 200},
		{id: "rabbitmq-password", mode: modeNear, keywords: []string{"add_user ", "change_password "}, regex: `rabbitmqctl (?:add_user|change_password) [^\s|;]{1,64} ['"]?` + word, before: 14, after: 240},
		{id: "secret-literal", mode: modeNear, keywords: []string{"--from-literal"}, regex: `--from-literal[= ]['"]?[\w.-]{1,64}=([^\s'"\\$]{6,200})`, before: 1, after: 300},
		{id: "pdo-password", mode: modeNear, keywords: []string{"new pdo("}, regex: `new PDO\(['"][^'"\n]{1,160}['"], ?['"][^'"\n]{1,64}['"], ?['"]([^'"\n$]{3,128})['"]`, before: 1, after: 400},
		{id: "quoted-in-error", mode: modeNear, keywords: []string{"invalid token", "invalid api key", "invalid password", "expired token", "incorrect api key", "wrong password", "bad token"}, regex: `(?i:token|api key|password)(?: provided)?:? ['"]([^'"\s\\]{8,200})['"]`, before: 1, after: 240, entropy: 3},
		{id: "password-below", mode: modeNear, keywords: []string{"password\n", "api key\n"}, regex: `(?i:password|api key)\n([A-Za-z0-9!@#%^&*_+=-]{0,64}\d[A-Za-z0-9!@#%^&*_+=-]{0,64})(?:\n|$)`, before: 1, after: 140, entropy: 3.4},
		{id: "google-app-password", mode: modeNear, keywords: []string{"app password", "app-password"}, regex: `(?i:app.password)[^\n]{0,12}?\b((?:[a-z]{4} ){3}[a-z]{4})(?:\W|$)`, before: 1, after: 60},
		{id: "wifi-password", mode: modeNear, keywords: []string{"psk=", "psk ="}, regex: `\bpsk ?= ?"?([^\s"'\\$]{8,64})`, before: 1, after: 80},
		{id: "seed-phrase", mode: modeNear, keywords: []string{"seed phrase", "recovery phrase", "secret phrase", "mnemonic"}, regex: `(?i:phrase|mnemonic)(?: (?:words|is|was))?\s?[:=]?\s{0,3}['"]?((?:[a-z]{3,8} ){11}(?:(?:[a-z]{3,8} ){3}|(?:[a-z]{3,8} ){6}|(?:[a-z]{3,8} ){9}|(?:[a-z]{3,8} ){12})?[a-z]{3,8})`, before: 1, after: 260},
		{id: "wallet-key", mode: modeNear, keywords: []string{"accounts: [", "accounts:[", "accounts = [", "\"accounts\": ["}, regex: `accounts["']?\s?[:=]\s?\[\s{0,16}['"]((?:0x)?[0-9a-fA-F]{64})['"]`, before: 1, after: 110},
		{id: "foreign-password", mode: modeNear, keywords: []string{"passwort", "kennwort", "mot de passe", "contraseña", "senha", "wachtwoord", "hasło", "пароль", "密码", "パスワード"}, regex: `(?:(?i:passwort|kennwort|mot de passe|contraseña|senha|wachtwoord|hasło|пароль)(?: (?:lautet|ist|est|es|é|is|to|jest|:))?|密码|パスワード)(?:是|は)?\s{0,3}[:=：]?\s{0,3}['"]?([^\s'"\\$，。]{1,40}\d[^\s'"\\$，。]{0,40})`, before: 1, after: 140},
	}
}
