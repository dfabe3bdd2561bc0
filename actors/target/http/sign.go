package http

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"ways/actors/target/expand"
)

// secretMin and secretMax bound a signing key, in bytes (Standard Webhooks,
// "Symmetric signatures").
const secretMin, secretMax = 24, 64

// sign returns the webhook-signature header: for each secret, "v1," and the
// base64 of the HMAC-SHA256 of "<id>.<timestamp>.<body>". secrets is "whsec_" and
// base64; several with spaces between are used together while one replaces
// another. The error never holds a secret.
func sign(secrets, id, timestamp string, body []byte) (string, error) {
	var signatures []string
	for secret := range strings.FieldsSeq(secrets) {
		encoded, ok := strings.CutPrefix(secret, "whsec_")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil {
			return "", errors.New("it is not whsec_ and base64")
		}
		if len(key) < secretMin || len(key) > secretMax {
			return "", fmt.Errorf("it holds %d bytes; the specification asks for %d to %d", len(key), secretMin, secretMax)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	if signatures == nil {
		return "", expand.ErrMissing
	}
	return strings.Join(signatures, " "), nil
}
