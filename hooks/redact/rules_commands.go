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
		{id: "wifi-password", mode: modeNear, keywords: []string{"psk=", "psk ="}, regex: `\bpsk ?= ?"?([^\s"'\\$]{8,64})`, before: 1, after: 80},
		{id: "seed-phrase", mode: modeNear, keywords: []string{"seed phrase", "recovery phrase", "secret phrase", "mnemonic"}, regex: `(?i:phrase|mnemonic)(?: (?:words|is|was))?\s?[:=]?\s{0,3}['"]?((?:[a-z]{3,8} ){11}(?:(?:[a-z]{3,8} ){3}|(?:[a-z]{3,8} ){6}|(?:[a-z]{3,8} ){9}|(?:[a-z]{3,8} ){12})?[a-z]{3,8})`, before: 1, after: 260},
		{id: "wallet-key", mode: modeNear, keywords: []string{"accounts: [", "accounts:[", "accounts = [", "\"accounts\": ["}, regex: `accounts["']?\s?[:=]\s?\[\s{0,16}['"]((?:0x)?[0-9a-fA-F]{64})['"]`, before: 1, after: 110},
		{id: "foreign-password", mode: modeNear, keywords: []string{"passwort", "kennwort", "mot de passe", "contraseña", "senha", "wachtwoord", "hasło", "пароль", "密码", "パスワード"}, regex: `(?:(?i:passwort|kennwort|mot de passe|contraseña|senha|wachtwoord|hasło|пароль)(?: (?:lautet|ist|est|es|é|is|to|jest|:))?|密码|パスワード)(?:是|は)?\s{0,3}[:=：]?\s{0,3}['"]?([^\s'"\\$，。]{1,40}\d[^\s'"\\$，。]{0,40})`, before: 1, after: 140},
	}
}
