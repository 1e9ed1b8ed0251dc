// For tests: an authority that issues certificates, so that the tree contains none that could expire.
#pragma once

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "weir/base/assert.h"
#include "weir/net/tls.h"

namespace weir {

class Authority {
 public:
  struct Pem {
    std::string cert;
    std::string key;
  };

  Authority()
      : key_(EVP_EC_gen("P-256"), EVP_PKEY_free),
        certificate_(make("Test authority", {}, key_.get(), nullptr, 0, 30)) {}

  std::string cert() const {
    return print([&](BIO* to) { PEM_write_bio_X509(to, certificate_.get()); });
  }

  // `names` in OpenSSL's syntax: "DNS:a.test,DNS:*.b.test,IP:127.0.0.1". The chain is the authority's certificate.
  Pem issue(const std::string& names, int from_days = 0, int to_days = 30) const {
    const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const Certificate certificate = make("Test certificate", names, key.get(), certificate_.get(), from_days, to_days);
    return {print([&](BIO* to) { PEM_write_bio_X509(to, certificate.get()); }) + cert(),
            print([&](BIO* to) { PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr); })};
  }

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  // Without an issuer the certificate is self-signed and an authority.
  Certificate make(const std::string& subject, const std::string& names, EVP_PKEY* key, const X509* issuer,
                   int from_days, int to_days) const {
    Certificate made(X509_new(), X509_free);
    static long serial = 1;
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), from_days * 86'400L - 3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), to_days * 86'400L);
    X509_set_pubkey(made.get(), key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1, 0);
    X509_set_issuer_name(made.get(), X509_get_subject_name(issuer == nullptr ? made.get() : issuer));
    if (issuer == nullptr) extend(made.get(), NID_basic_constraints, "critical,CA:TRUE");
    if (!names.empty()) extend(made.get(), NID_subject_alt_name, names);
    WEIR_ASSERT(X509_sign(made.get(), key_.get(), EVP_sha256()) > 0);
    return made;
  }

  static void extend(X509* certificate, int kind, const std::string& value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    WEIR_ASSERT(extension != nullptr);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  template <class Write>
  static std::string print(Write write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> to(BIO_new(BIO_s_mem()), BIO_free);
    write(to.get());
    char* text = nullptr;
    const long size = BIO_get_mem_data(to.get(), &text);
    return {text, static_cast<std::size_t>(size)};
  }

  Key key_;
  Certificate certificate_;
};

// A temporary folder for a test's certificates.
class CertificateFolder {
 public:
  CertificateFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir_tls_XXXXXX").string();
    WEIR_ASSERT(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  CertificateFolder(const CertificateFolder&) = delete;
  CertificateFolder& operator=(const CertificateFolder&) = delete;
  ~CertificateFolder() { std::filesystem::remove_all(path_); }

  // Replaces the file atomically and returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = path_ / name;
    std::ofstream(path.string() + ".new") << text;
    std::filesystem::rename(path.string() + ".new", path);
    return path.string();
  }
  CertificateFiles write(const std::string& name, const Authority::Pem& pem) const {
    return {write(name + ".pem", pem.cert), write(name + ".key", pem.key)};
  }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace weir
