// A sign-in page with limits: eight threads try passwords, one customer has its own limit, and each attempt must pass
// two limits at once. Prints how many attempts passed, and fails if that is not exactly what the limits allow.
#include <weir/limiter.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

// Checked at compile time: per_hour(0) or a burst of 0 does not compile.
constexpr weir::Limit kPerAccount = weir::Limit::per_hour(10).with_burst(5);
constexpr weir::Limit kPerAddress = weir::Limit::per_hour(60).with_burst(20);

class SignIn {
 public:
  // Charges both limits or none: an attempt on a locked account takes nothing from the address.
  bool attempt(std::string_view address, std::string_view account) {
    const weir::Buckets::Verdict verdict = buckets_.spend_together({{per_address_, address}, {per_account_, account}});
    return verdict.allowed;
  }

  // Call after a correct password: the account gets all its attempts back.
  void succeed(std::string_view account) { per_account_.reset(account); }

  bool trust(std::string_view address, const weir::Limit& limit) {
    return per_address_.set_override(address, limit).has_value();
  }

  weir::Limiter& per_account() { return per_account_; }
  weir::Limiter& per_address() { return per_address_; }

 private:
  weir::Buckets buckets_;
  weir::Limiter per_address_{buckets_, "address", kPerAddress};
  weir::Limiter per_account_{buckets_, "account", kPerAccount};
};

// Attempts sign-ins from eight threads at once, all on different accounts. Returns how many passed.
int attack(SignIn& page, std::string_view address) {
  std::atomic<int> passed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        if (page.attempt(address, "user-" + std::to_string(t * 100 + i))) ++passed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return passed;
}

bool check(const char* what, long got, long expected) {
  std::printf("%-58s %4ld %s\n", what, got, got == expected ? "" : "(unexpected)");
  return got == expected;
}

}  // namespace

int main() {
  SignIn page;
  bool good = check("800 attempts from one address on 8 threads passed:", attack(page, "198.51.100.7"), 20);

  // Limits from data are validated when they are created; the error says what is wrong.
  const weir::Result<weir::Limit> wrong = weir::Limit::make(100, std::chrono::hours{1}, 0);
  std::printf("a limit from a file is refused: %s\n", wrong.error().detail.c_str());
  const weir::Result<weir::Limit> office = weir::Limit::make(1000, std::chrono::hours{1}, 300);
  good &= office && page.trust("203.0.113.1", *office);
  good &= check("800 attempts from an office with an override passed:", attack(page, "203.0.113.1"), 300);

  int guesses = 0;
  while (page.attempt("192.0.2.1", "alice")) ++guesses;
  good &= check("guesses of one password until the account is locked:", guesses, 5);
  const weir::Decision locked = page.per_account().peek("alice");
  std::printf("alice may try again in %lld s\n",
              static_cast<long long>(weir::ceil_seconds(locked.retry_after).count()));
  good &= check("tokens the locked account cost its address:", 20 - page.per_address().peek("192.0.2.1").remaining, 5);
  page.succeed("alice");
  good &= check("attempts left after she signed in:", static_cast<long>(page.per_account().peek("alice").remaining), 5);
  return good ? 0 : 1;
}
