package redact_test

import (
	"strings"
	"testing"

	"ways/hooks/redact"
)

// Where secrets stand in sessions. The secret is between « and »; all else must
// stay.
func TestPlaces(t *testing.T) {
	m := masker(t, redact.Options{})
	for _, row := range []string{
		`      - POSTGRES_PASSWORD=«abcDEF1»`,
		`      POSTGRES_PASSWORD: «abcdef»`,
		`aws configure set aws_secret_access_key «wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzKEYs»`,
		`aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzKEYs»`,
		`git clone https://«ghp_0123456789abcdefghijABCDEFGHIJ012345»@github.com/a/b`,
		`git clone https://x-access-token:«ghs_0123456789abcdefghijABCDEFGHIJ012345»@github.com/a/b`,
		`//registry.example.com/:_authToken=«npm_0123456789abcdefghijABCDEFGHIJ012345»`,
		`//registry.example.com/:_password=«c2VjcmV0cHc=»`,
		`_auth=«YWRtaW46c2VjcmV0cHc=»`,
		`docker login -u bob -p «s3cretPw» registry.example.com`,
		`docker login --username bob --password «s3cretPw»`,
		`"auths": {"registry.example.com": {"auth": "«Ym9iOnMzY3JldFB3»"}}`,
		`helm install x --set auth.password=«s3cretPw»,auth.user=bob`,
		`psql "host=db user=app password=«s3cretPw» dbname=x"`,
		`jdbc:sqlserver://db:1433;database=x;user=sa;password=«s3cretPw»;encrypt=true`,
		`Server=db;User Id=sa;Password=«s3cretPw»;Database=x`,
		`gpg --batch --passphrase «s3cretPw» -d x.gpg`,
		`openssl rsa -in k.pem -passin pass:«s3cretPw»`,
		`vault kv put secret/x password=«s3cretPw» user=bob`,
		`kubectl create secret generic x --from-literal=password=«s3cretPw»`,
		`gh secret set DB --body "«s3cretPw99»"`,
		`{"SecretString":"{\"username\":\"a\",\"password\":\"«b3ta»\"}"}`,
		`client = OpenAI(api_key="«sk-9bcdefghijklmnopqrstuvwx123456789012345678901234»")`,
		`requests.get(url, auth=("user", "«s3cretPw»"))`,
		`conn = psycopg2.connect(user='a', password='«s3cretPw»')`,
		`curl -d "user=x&password=«s3cretPw»&next=/" https://h/login`,
		`curl --data '{"password":"«s3cretPw»"}' https://h/login`,
		`The API key is «8f7d6e5c4b3a29181716151413121110» for staging.`,
		`my aws keys: «AKIAIOSFODNN7EXAMPLQ» / «wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzKEYs»`,
		`root:«$6$rounds=5000$abcdefgh$0123456789abcdefABCDEF0123456789abcdefABCDEF0123456789abcdefABCDEF0123456789abcdef.»:19000:0:99999:7:::`,
		`db.host:5432:app:bob:«s3cretPw»`,
		`spring.datasource.password=«s3cretPw»`,
		`'password' => '«s3cretPw»',`,
		`define('DB_PASSWORD', '«s3cretPw»');`,
		`user: admin / pass: «s3cretPw»`,
		`PIN: 4821, password: «93847561»`,
		`"password": "«correct horse battery staple»",`,
		`SSHPASS=«s3cretPw» sshpass -e ssh x`,
		`sshpass -p«s3cretPw» ssh x`,
		`az login --service-principal -u app -p «s3cretPw» --tenant x`,
		`redis-cli -a «s3cretPw» ping`,
		`mysqldump -uroot -p«s3cretPw» db > x`,
		`ftp://bob:«s3cretPw»@host/`,
		`X-Vault-Token: «hvs.CAESIJ7xq9wR2mT5kLp8vBn3cZd6fGh1jYs4»`,
		`set-cookie: __Host-session=«abcdef0123456789»; Path=/; Secure`,
		`TWILIO_AUTH_TOKEN=«0123456789abcdef0123456789abcdef»`,
		`my secret is «7f3kd92kfld0»`,
		`curl -u bob:«s3cretPw» https://h/`,
		`curl -H 'X-Api-Key: «k3y9f8e7d6c5b4a3»' https://h/`,

		// Nothing to mask.
		`password: !vault |`,
		`token: abc`,
		`Token count: 12345 tokens`,
		`"private_key_id": "0123456789abcdef0123456789abcdef01234567"`,
		`password=${DB_PASSWORD} api_key=$(pass show api) token={{ .Values.token }}`,
		`--- PASS: TestAuth/3 (0.00s)`,
		`    def __init__(self, password: str, token: Optional[str] = None):`,
		`if user.password != form.password { return ErrPassword }`,
		`const tokenKey = "session_token"`,
		`The password must be at least 12 characters. Password: required.`,
		`Set the token with: tool --token <token> or TOKEN=... tool`,
		`"integrity": "sha512-4cRgLZTJdLhVdVjfZoHdLp0hqzCBP5kV2Yv1b3c0LqDpBzVg9pG3oT0mZ0qvGQ8FnJ1b0cVbGg0cXy0aYQ2g=="`,
		`github.com/a/b v1.2.3 h1:dGhpcyBpcyBub3QgYSByZWFsIHN1bSBhdCBhbGwh=`,
		`id_rsa.pub: ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 user@host`,
		`author: Jane Doe, authored 3 days ago, authority: none, keyboard: us`,
		`cache-key-d41d8cd98f00b204e9800998ecf8427e`,
		`password:`, `password=`, `"password": ""`, `password = ""`, `token: null,`,
	} {
		text := strings.NewReplacer("«", "", "»", "").Replace(row)
		out, _ := m.Text([]byte(text))
		rest, good := string(out), true
		for i, part := range strings.FieldsFunc(row, func(r rune) bool { return r == '«' || r == '»' }) {
			secret := i%2 == 1
			if strings.HasPrefix(row, "«") {
				secret = !secret
			}
			if !secret {
				if !strings.HasPrefix(rest, part) {
					good = false
					break
				}
				rest = rest[len(part):]
				continue
			}
			_, after, ok := strings.Cut(rest, "]")
			if !ok || !strings.HasPrefix(rest, "[REDACTED:") {
				good = false
				break
			}
			rest = after
		}
		if !good || rest != "" {
			t.Errorf("%s\ngot %s", row, out)
		}
	}
}
