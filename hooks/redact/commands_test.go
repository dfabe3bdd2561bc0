package redact_test

import (
	"strings"
	"testing"

	"ways/hooks/redact"
)

// Secrets that only their place in a command or a sentence shows. The secret is
// between « and »; rows without one must stay.
func TestCommandPlaces(t *testing.T) {
	m := masker(t, redact.Options{})
	for _, row := range []string{
		"echo «bkH3otquzwzk4qxYkajJ» | docker login -u acme --password-stdin",
		"printf '«bkH3otq»\\n' | helm registry login r.example.com -u me --password-stdin",
		"echo '«DDrV1EOuU»' | sudo -S systemctl restart nginx",
		"echo 'deploy:«nTefoOWpY»' | sudo chpasswd",
		"htpasswd -bc .htpasswd admin «QLjY9DnGh»",
		"htpasswd -nbB admin «QLjY9DnGh»",
		"keytool -list -keystore k.jks -storepass «PJOBM3PBu» -keypass «Aa9PJOBM»",
		"ldapsearch -x -D cn=admin,dc=acme -w «48u1dUmi4Y» -b dc=acme",
		"smbclient //srv/share -U 'acme%«W3ahiLVmi9»'",
		`net use Z: \\srv\share /user:acme\bob «f0MT5pwC4L»`,
		"$p = ConvertTo-SecureString '«28YMMHoUFS»' -AsPlainText -Force",
		"expect \"Password:\"\nsend \"«CHst2twmql»\\r\"",
		"network={\n ssid=\"home\"\n psk=\"«Dl44nJmQ.Oaj»\"\n}",
		"my seed phrase: «abandon ability able about above absent absorb abstract absurd abuse access zoo»",
		`accounts: ["«0x44d9a0c5ccc6349dd37bc03977cfd0961351a0a68d6e615d36fb7dbd74409f83»"]`,
		"das Passwort lautet «Tr0ub4dor&3xY»",
		"le mot de passe est «s0leil-bleu»",
		"пароль: «qwerty12»",
		"$env:AZURE_CLIENT_SECRET = \"«k4QJVsNYM9»\"",
		"let g:gh_token = '«t3QaZdEIaE5c»'",
		"setx API_SECRET \"«JGNllYfy3g»\"",
		"set -gx OPENAI_KEY «HMjEhfpWcq»",
		"printf '«4foXJT3vcN»' | docker secret create db_pw -",
		"zip -P «nOxiuKTAFp» -r a.zip dir",
		"7z a -p«kKD9xBcOlQ» a.7z dir",
		"sqlcmd -S h -U sa -P '«ZgjS6nulVG»' -Q 'select 1'",
		"sqlplus scott/«sk9xrdRMHK»@//h:1521/ORCL",
		"SET PASSWORD FOR 'bob'@'%' = PASSWORD('«Rr0rpdA0HJ»');",
		"chpasswd:\n  list: |\n    root:«Fszad5tibn»\n  expire: False",
		"rabbitmqctl add_user bob «Hb01iISD6t»",
		"kubectl create secret generic db --from-literal=pw=«Cujq9lOFUP»",
		"new PDO('mysql:host=h;dbname=d', 'root', '«pQAuZTZ3RP»');",
		"ValueError: invalid token '«vEY3sMrHZgJs»' for user bob",
		"Password\n«X7R5qyt319eiJpiw»\n",
		"gmail app password: «mgnp vrvb mvfb wyof»",

		"echo $TOKEN | docker login -u acme --password-stdin",
		"cat pw.txt | docker login --password-stdin",
		"sudo -S is read from stdin",
		"htpasswd -c .htpasswd admin",
		"keytool -storepass:env PW -list",
		"ldapsearch -x -b dc=acme -W",
		"smbclient -N //srv/share",
		"net use Z: /delete",
		"send \"yes\\r\"",
		"key_mgmt=WPA-PSK",
		"a mnemonic is a word that helps to remember what would else be lost to them",
		`"accounts": ["alice", "bob"]`,
		"setx PATH \"%PATH%;C:\\bin\"",
		"unzip -p a.zip x",
		"7z x -pipe a",
		"SELECT password('x')",
		"root:x:0:0:root:/root:/bin/sh",
		"user:password:uid",
		"invalid token 'end' for x",
		"Password\nmust be at least 8 characters",
		"The app password page is here now",
		"Das Passwort eingeben, dann weiter.",
	} {
		text := strings.NewReplacer("«", "", "»", "").Replace(row)
		out, found := m.Text([]byte(text))
		var want, got []string
		for rest := row; ; {
			_, after, ok := strings.Cut(rest, "«")
			if !ok {
				break
			}
			secret, tail, _ := strings.Cut(after, "»")
			want, rest = append(want, secret), tail
		}
		for _, f := range found {
			got = append(got, text[f.Start:f.End])
		}
		if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("%s\nmasked %q: %s", row, got, out)
		}
	}
}
