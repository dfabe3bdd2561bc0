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
