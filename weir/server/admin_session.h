// The admin listener: GET /metrics and the probes. The rest of the admin API joins here.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "weir/protocol/session.h"
#include "weir/wire/http1_reader.h"

namespace weir {

// What an admin session can tell; called in a loop's thread.
struct AdminFront {
  std::function<std::string()> metrics;
  std::function<bool()> ready;
  RequestHead head;  // the sessions' workbench
};

class AdminSession final : public Session {
 public:
  // The front outlives the session.
  explicit AdminSession(AdminFront& front) noexcept : front_(front), reader_(front.head) {}

  Result<std::size_t> receive(std::string_view bytes, Queries& queries, std::string& out) override;
  void reply(std::uint64_t sequence, const Result<Answer>& answer, std::string& out) override;
  bool finished() const noexcept override { return closing_; }
  void drain(std::string& out) override;

 private:
  void respond(std::string& out);
  static void refuse(int status, std::string& out);

  AdminFront& front_;
  RequestReader reader_;
  bool closing_ = false;
};

}  // namespace weir
