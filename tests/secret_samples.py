"""Made-up secrets for the tests, in parts: no file has anything that looks like a live key."""

from __future__ import annotations

GITHUB = "gh" + "p_" + "a1B2c3D4e5F6" * 3
OPENAI = "sk-" + "proj-" + "Zx8Yw7Vu6Ts5" * 3
JWT = ".".join(["ey" + "JhbGciOiJIUzI1NiJ9", "ey" + "JzdWIiOiI0Mm1vcmUifQ", "Qx7" * 14])
PEM = "\n".join(
    ["-----BEGIN " + "PRIVATE KEY-----", "MIIEvQ" + "k3Jx" * 14, "-----END " + "PRIVATE KEY-----"]
)
CARD = "4539" + "1488" + "0343" + "6467"
PASSWORD = "Blue" + "Heron77"
PHONE = "138" + "12345678"
EMAIL = "kim@" + "example.com"
ID = "110105" + "19491231" + "002X"

SECRETS = {
    "github_token": GITHUB,
    "openai_key": OPENAI,
    "jwt": JWT,
    "private_key": PEM,
    "card": CARD,
}
