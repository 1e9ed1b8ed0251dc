#include "weir/identify/jwt.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

namespace weir::jwt_test {
namespace {

using namespace std::chrono_literals;

constexpr Wall kNow{1'300'819'000s};  // before the tokens of the RFCs expire

// RFC 7515 A.1 to A.3 and RFC 8037 A.
const std::string kPayload =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
const std::string kHs256 =
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." + kPayload + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
constexpr const char* kHs256Secret =
    "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
const std::string kRs256 =
    "eyJhbGciOiJSUzI1NiJ9." + kPayload +
    ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t"
    "1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzD"
    "wusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77"
    "Rw";
const std::string kEs256 = "eyJhbGciOiJFUzI1NiJ9." + kPayload +
                           ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
const std::string kRsaKey =
    R"("kty":"RSA","n":")"
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR"
    "T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXB"
    "dQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9ia"
    "GNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
    R"(","e":"AQAB")";
const std::string kEcKey = R"("kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
                           R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")";
const std::string kEdKey = R"("kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")";

std::string decode(std::string_view text) {
  std::string bytes;
  EXPECT_TRUE(decode_base64url(text, bytes)) << text;
  return bytes;
}

std::string encode(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  unsigned held = 0;
  int bits = 0;
  for (const char c : bytes) {
    held = held << 8 | static_cast<unsigned char>(c);
    for (bits += 8; bits >= 6;) text += kDigits[held >> (bits -= 6) & 63];
  }
  if (bits > 0) text += kDigits[held << (6 - bits) & 63];
  return text;
}

std::string sign(std::string_view header, std::string_view payload, std::string_view secret = "secret") {
  const std::string text = encode(header) + "." + encode(payload);
  std::array<unsigned char, 32> mac;
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  return text + "." + encode({reinterpret_cast<const char*>(mac.data()), mac.size()});
}

JwtKeys keys(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "{" : ",{") + one + "}";
  const auto parsed = JwtKeys::parse(R"({"keys":[)" + text + "]}");
  EXPECT_TRUE(parsed) << parsed.error().detail;
  return parsed ? *parsed : JwtKeys{};
}

std::string refusal(const std::string& keys) {
  const auto parsed = JwtKeys::parse(R"({"keys":[)" + keys + "]}");
  return parsed ? "" : parsed.error().detail;
}

// Returns the claims, or the reason. Checks twice: the cached outcome is the same.
std::string check(const JwtVerifier& verifier, std::string_view token, Wall now = kNow) {
  std::string result;
  for (int i = 0; i < 2; ++i) {
    const JwtVerifier::Outcome outcome = verifier.check(token, now);
    const std::string again =
        outcome.claims == nullptr ? std::string(print(outcome.reason)) : "iss=" + outcome.claims->front();
    if (i == 1) {
      EXPECT_EQ(result, again);
    }
    result = again;
  }
  return result;
}

JwtVerifier with_keys(const std::vector<std::string>& all, JwtRules rules = {}) {
  return JwtVerifier(std::move(rules), keys(all), {"iss"}, HashKey{1, 2});
}
JwtVerifier with_secret(JwtRules rules = {}) {
  rules.secret = "secret";
  return JwtVerifier(std::move(rules), {}, {"iss"}, HashKey{1, 2});
}

constexpr const char* kHeader = R"({"alg":"HS256"})";
constexpr const char* kClaims = R"({"iss":"joe","exp":1300819380})";

TEST(Jwt, VerifiesTheExamplesOfTheRfcs) {
  EXPECT_EQ(check(JwtVerifier({.secret = decode(kHs256Secret)}, {}, {"iss"}, {}), kHs256), "iss=joe");
  EXPECT_EQ(check(with_keys({kRsaKey}), kRs256), "iss=joe");
  EXPECT_EQ(check(with_keys({kEcKey}), kEs256), "iss=joe");
  // RFC 8037 A.4 signs a text that is not JSON.
  const std::string text = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
  const std::string signature =
      "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
  const JwtKeys ed = keys({kEdKey});
  EXPECT_TRUE(ed.keys()[0].verifies(text, decode(signature)));
  EXPECT_FALSE(ed.keys()[0].verifies(text + "A", decode(signature)));
  EXPECT_EQ(check(with_keys({kEdKey}), text + "." + signature), "malformed");
}

TEST(Jwt, RejectsEveryChangedByteOfASignedToken) {
  for (const auto& [token, key] : {std::pair{kRs256, kRsaKey}, {kEs256, kEcKey}}) {
    const JwtVerifier verifier = with_keys({key});
    for (std::size_t i = 0; i < token.size(); i += 7) {
      std::string forged = token;
      forged[i] = forged[i] == 'A' ? 'B' : 'A';
      EXPECT_FALSE(check(verifier, forged).starts_with("iss=")) << i;
    }
  }
}

TEST(Jwt, RejectsATokenWithoutASignature) {
  const JwtVerifier verifier = with_secret();
  for (const char* const alg : {"none", "None", "NONE", "nOnE"}) {
    const std::string header = R"({"alg":")" + std::string(alg) + "\"}";
    EXPECT_EQ(check(verifier, encode(header) + "." + kPayload + "."), "unsupported");
    EXPECT_EQ(check(verifier, sign(header, kClaims)), "unsupported");
  }
  EXPECT_EQ(check(verifier, encode(kHeader) + "." + kPayload + "."), "signature");
  EXPECT_EQ(check(verifier, encode(kHeader) + "." + kPayload), "malformed");
}

TEST(Jwt, NeverUsesAPublicKeyAsASecretNorASecretAsAKey) {
  const std::string n = kRsaKey.substr(17, 342);
  for (const std::string& secret : {n, decode(n), kRsaKey, "{" + kRsaKey + "}", std::string()}) {
    EXPECT_EQ(check(with_keys({kRsaKey}), sign(kHeader, kClaims, secret)), "algorithm");
    EXPECT_EQ(check(with_keys({kRsaKey}, {.secret = "secret"}), sign(kHeader, kClaims, secret)), "signature");
  }
  EXPECT_EQ(check(with_secret(), kRs256), "unknown_key");
  EXPECT_EQ(check(with_keys({kEcKey}), kRs256), "unknown_key");
  // The kid names a key of another kind.
  EXPECT_EQ(check(with_keys({R"("kid":"1",)" + kEcKey, R"("kid":"2",)" + kRsaKey}),
                  sign(R"({"alg":"RS256","kid":"1"})", kClaims)),
            "algorithm");
}

TEST(Jwt, RejectsHeadersThatChangeTheMeaningOfTheSignature) {
  const JwtVerifier verifier = with_secret();
  EXPECT_EQ(check(verifier, sign(R"({"alg":"HS256","crit":["exp"],"exp":1})", kClaims)), "unsupported");
  EXPECT_EQ(check(verifier, sign(R"({"alg":"HS256","crit":[]})", kClaims)), "unsupported");
  EXPECT_EQ(check(verifier, sign(R"({"alg":"HS256","b64":false})", kClaims)), "unsupported");
  EXPECT_EQ(check(verifier, sign(R"({"alg":"HS384"})", kClaims)), "unsupported");
  EXPECT_EQ(check(verifier, sign(R"({"alg":"HS256","alg":"none"})", kClaims)), "malformed");
  EXPECT_EQ(check(verifier, sign(kHeader, R"({"iss":"joe","iss":"jim","exp":1300819380})")), "malformed");
  EXPECT_EQ(check(verifier, sign(kHeader, R"({"exp":1300819380,"a":{"b":1,"b":2}})")), "malformed");
  for (const char* const header : {"", "{}", "[]", "1", R"({"alg":1})", R"({"alg":"HS256","kid":1})", "{\"alg\":"}) {
    EXPECT_EQ(check(verifier, sign(header, kClaims)), "malformed") << header;
  }
}

TEST(Jwt, RejectsOtherForms) {
  const JwtVerifier verifier = with_secret();
  const std::string good = sign(kHeader, kClaims);
  EXPECT_EQ(check(verifier, good), "iss=joe");
  for (const std::string& bad : {std::string(), std::string("a"), good + ".", good + ".a.b", " " + good, good + " ",
                                 good + "=", "." + good, std::string("..")}) {
    EXPECT_EQ(check(verifier, bad), "malformed") << bad;
  }
  std::string long_claim = R"({"iss":"joe","exp":1300819380,"a":")" + std::string(6000, 'x') + "\"}";
  EXPECT_EQ(check(verifier, sign(kHeader, long_claim)), "iss=joe");
  const std::size_t room = bounds::jwt_bytes_max - sign(kHeader, long_claim).size();
  long_claim.insert(40, room / 4 * 3, 'x');
  EXPECT_EQ(check(verifier, sign(kHeader, long_claim)), "iss=joe");
  long_claim.insert(40, 4, 'x');
  EXPECT_EQ(check(verifier, sign(kHeader, long_claim)), "too_large");
}

TEST(Jwt, IsValidFromNbfToExpWithLeeway) {
  const JwtVerifier verifier = with_secret();
  const auto at = [](std::int64_t seconds) { return Wall{std::chrono::seconds{seconds}}; };
  const std::string token = sign(kHeader, R"({"iss":"joe","nbf":1000,"exp":2000})");
  EXPECT_EQ(check(verifier, token, at(969)), "not_yet_valid");
  EXPECT_EQ(check(verifier, token, at(970)), "iss=joe");
  EXPECT_EQ(check(verifier, token, at(2029)), "iss=joe");
  EXPECT_EQ(check(verifier, token, at(2030)), "expired");
  EXPECT_EQ(check(verifier, token, at(1500)), "iss=joe") << "a wall clock may go back";
  EXPECT_EQ(check(verifier, sign(kHeader, R"({"iss":"joe","exp":2000.9})"), at(2029)), "iss=joe");
  EXPECT_EQ(check(verifier, sign(kHeader, R"({"exp":99999999999999999999999})"), at(2029)), "iss=");
  for (const char* const claims :
       {R"({"exp":"2000"})", R"({"exp":2e3})", R"({"exp":null})", R"({"exp":2000,"nbf":"1"})", R"([1])", "1"}) {
    EXPECT_EQ(check(verifier, sign(kHeader, claims), at(1500)), "malformed") << claims;
  }
  EXPECT_EQ(check(verifier, sign(kHeader, R"({"iss":"joe"})")), "missing_exp");
  EXPECT_EQ(check(with_secret({.require_exp = false}), sign(kHeader, R"({"iss":"joe"})")), "iss=joe");
}

TEST(Jwt, ChecksTheIssuerAndTheAudience) {
  const JwtVerifier verifier = with_secret({.issuer = "joe", .audience = "api"});
  EXPECT_EQ(check(verifier, sign(kHeader, R"({"iss":"joe","aud":"api","exp":1300819380})")), "iss=joe");
  EXPECT_EQ(check(verifier, sign(kHeader, R"({"iss":"joe","aud":["x","api"],"exp":1300819380})")), "iss=joe");
  EXPECT_EQ(check(verifier, sign(kHeader, R"({"iss":"jim","aud":"api","exp":1300819380})")), "issuer");
  EXPECT_EQ(check(verifier, sign(kHeader, R"({"iss":["joe"],"aud":"api","exp":1300819380})")), "issuer");
  EXPECT_EQ(check(verifier, sign(kHeader, R"({"iss":"joe","aud":"apis","exp":1300819380})")), "audience");
  EXPECT_EQ(check(verifier, sign(kHeader, R"({"iss":"joe","exp":1300819380})")), "audience");
}

TEST(Jwt, ReadsClaimsByNameAndInsideOthers) {
  const JwtVerifier verifier({.secret = "secret"}, {}, {"sub", "a.b", "c.d", "e.f.g", "n", "x"}, HashKey{});
  const std::string token = sign(kHeader, R"({"exp":1300819380,"sub":12345678901234567890,"a.b":"exact","a":{"b":"no"},
      "c":{"d":"inside"},"e":{"f.g":"deeper"},"n":1.5,"x":true})");
  const auto outcome = verifier.check(token, kNow);
  ASSERT_NE(outcome.claims, nullptr);
  EXPECT_EQ(*outcome.claims,
            (JwtVerifier::Claims{"12345678901234567890", "exact", "inside", "deeper", std::string(), std::string()}));
  EXPECT_EQ(verifier.index_of("c.d"), 2u);
}

TEST(Jwt, FindsTheKeyByKidOrTriesAFew) {
  const std::string other = R"("kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",)"
                            R"("y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM")";
  EXPECT_EQ(check(with_keys({other, other, other, kEcKey}), kEs256), "iss=joe");
  EXPECT_EQ(check(with_keys({other, other, other, other, kEcKey}), kEs256), "signature") << "four are tried";
  EXPECT_EQ(check(with_keys({R"("kid":"a",)" + kEcKey}), kEs256), "iss=joe");
  const auto with_kid = [](const char* kid) {
    return encode(R"({"alg":"ES256","kid":")" + std::string(kid) + "\"}") + "." + kPayload + "." + encode("x");
  };
  EXPECT_EQ(check(with_keys({R"("kid":"a",)" + kEcKey}), with_kid("b")), "unknown_key");
  EXPECT_EQ(check(with_keys({R"("kid":"a",)" + kEcKey}), with_kid("A")), "unknown_key");
  EXPECT_EQ(check(with_keys({kEcKey}), with_kid("a")), "unknown_key") << "a key without a kid does not match";
  EXPECT_EQ(check(with_keys({R"("kid":"a",)" + kEcKey}), with_kid("a")), "signature");
  EXPECT_EQ(check(with_keys({kEcKey}, {.algorithms = {JwtAlgorithm::rs256}}), kEs256), "algorithm");
}

TEST(Jwt, AcceptsAP256SignatureAsTwoNumbersAndNotInDer) {
  const std::string raw = decode(kEs256.substr(kEs256.rfind('.') + 1));
  ASSERT_EQ(raw.size(), 64u);
  // Both numbers are below 2^255 or get a zero byte in front.
  const auto number = [](std::string bytes) {
    if ((bytes[0] & 0x80) != 0) bytes.insert(0, 1, '\0');
    return '\2' + std::string(1, static_cast<char>(bytes.size())) + bytes;
  };
  const std::string both = number(raw.substr(0, 32)) + number(raw.substr(32));
  const std::string der = '\x30' + std::string(1, static_cast<char>(both.size())) + both;
  const std::string text = kEs256.substr(0, kEs256.rfind('.') + 1);
  EXPECT_EQ(check(with_keys({kEcKey}), text + encode(raw)), "iss=joe");
  EXPECT_EQ(check(with_keys({kEcKey}), text + encode(der)), "signature");
  EXPECT_EQ(check(with_keys({kEcKey}), text + encode(std::string(64, '\0'))), "signature");
}

TEST(JwtKeys, RefusesUnsafeKeys) {
  EXPECT_EQ(refusal("{" + kRsaKey + R"(},{"kty":"oct","k":"c2VjcmV0"})"),
            "keys[1]: an oct key is a shared secret; use jwt.secret");
  EXPECT_EQ(refusal(R"({"kid":"a",)" + kRsaKey + R"(},{"kid":"a",)" + kEcKey + "}"), "keys[1]: kid \"a\" occurs twice");
  const std::string n1024(171, 'v');
  EXPECT_EQ(refusal(R"({"kty":"RSA","e":"AQAB","n":")" + n1024.substr(0, 170) + "w\"}"),
            "keys[0]: an RSA key must have 2048 to 8192 bits, not 1024");
  EXPECT_NE(refusal(R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
                    R"("y":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"})")
                .find("not a point of P-256"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"kty":"OKP","crv":"Ed25519","x":"AA"})"), "");
  EXPECT_NE(refusal("1"), "");
  EXPECT_FALSE(JwtKeys::parse(""));
  EXPECT_FALSE(JwtKeys::parse("[]"));
  EXPECT_FALSE(JwtKeys::parse("{}"));
  EXPECT_FALSE(JwtKeys::parse(R"({"keys":[],"keys":[]})"));
  std::string many = "{" + kEcKey + "}";
  for (std::size_t i = 1; i < bounds::jwt_keys_max; ++i) many += ",{" + kEcKey + "}";
  EXPECT_EQ(refusal(many), "");
  EXPECT_EQ(refusal(many + ",{" + kEcKey + "}"), "more than 100 keys");
}

TEST(JwtKeys, SkipsKeysForOtherPurposes) {
  const std::string none = "no key to verify RS256, ES256 or EdDSA with";
  EXPECT_EQ(refusal(R"({"use":"enc",)" + kRsaKey + "}"), none);
  EXPECT_EQ(refusal(R"({"alg":"PS256",)" + kRsaKey + "}"), none);
  EXPECT_EQ(refusal(R"({"key_ops":["encrypt"],)" + kRsaKey + "}"), none);
  EXPECT_EQ(refusal(R"({"kty":"EC","crv":"P-384","x":"AA","y":"AA"},{"kty":"OKP","crv":"X25519","x":"AA"},{})"), none);
  EXPECT_EQ(refusal(R"({"use":"sig","alg":"RS256","key_ops":["verify"],)" + kRsaKey + "}"), "");
}

TEST(Base64url, HasOneSpellingForEveryText) {
  std::string bytes;
  for (const char* const bad : {"A", "AB", "AAB", "AA==", "AA=", "A A", "AAAA\n", "+A", "/A", "AAAAA"}) {
    EXPECT_FALSE(decode_base64url(bad, bytes)) << bad;
  }
  EXPECT_TRUE(decode_base64url("", bytes));
  EXPECT_EQ(decode("AA"), std::string(1, '\0'));
  EXPECT_EQ(decode("_-_-"), "\xff\xef\xfe");
}

}  // namespace
}  // namespace weir::jwt_test
