// The exchanges of one loop, by slot. A token names a slot, its generation and the number of a question, so that an
// answer finds nothing if its exchange has ended.
//
// Released exchanges are reused, the most recent first, because their memory is most likely still in the CPU cache.
// Thread safety: none, except run().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/http/exchange.h"

namespace weir::http {

// The class of an exchange object (T::kKind). An object is reused only for its own class.
enum class ExchangeKind : unsigned char { http1, http2, fake };

// slot 20 bits, generation 20 bits, question 24 bits.
struct ExchangeToken {
  static constexpr int kQuestionBits = 24;
  static constexpr int kGenerationBits = 20;
  static constexpr std::uint32_t kQuestionsMax = 1u << kQuestionBits;
  static constexpr std::uint64_t kGenerations = 1u << kGenerationBits;

  static std::uint64_t make(std::uint32_t slot, std::uint64_t serial, std::uint32_t question) noexcept {
    return std::uint64_t{slot} << (kQuestionBits + kGenerationBits) | (serial & (kGenerations - 1)) << kQuestionBits |
           question;
  }
  static std::uint32_t slot(std::uint64_t token) noexcept {
    return static_cast<std::uint32_t>(token >> (kQuestionBits + kGenerationBits));
  }
  static std::uint64_t generation(std::uint64_t token) noexcept { return token >> kQuestionBits & (kGenerations - 1); }
  static std::uint32_t question(std::uint64_t token) noexcept {
    return static_cast<std::uint32_t>(token & (kQuestionsMax - 1));
  }
};
static_assert(bounds::http_exchanges_max + bounds::http_refusals_max <= 1u << 20, "a slot has 20 bits");

class ExchangeTable : public std::enable_shared_from_this<ExchangeTable> {
 public:
  // Runs work on the loop's thread in a later turn. Thread-safe.
  using Post = std::function<void(std::function<void()>)>;

  // Without `post`, ExchangeRef::run() does nothing.
  explicit ExchangeTable(Post post, std::size_t exchanges_max = bounds::http_exchanges_max);
  ~ExchangeTable();

  // What an exchange is for. Refusals have bounds::http_refusals_max slots more, so that a full table can say so.
  enum class Use : unsigned char { request, refusal };

  // Opens an exchange of the host's connection. Returns null if the table is full.
  template <class T>
  T* take(ExchangeHost& host, Use use = Use::request) {
    if (use == Use::request && open_ >= exchanges_max_) return nullptr;
    std::vector<std::uint32_t>& spare = spare_[static_cast<std::size_t>(T::kKind)];
    if (!spare.empty()) {
      const std::uint32_t slot = spare.back();
      spare.pop_back();
      return static_cast<T*>(open(slot, host));
    }
    const std::uint32_t slot = empty_slot();
    if (slot == kNoSlot) return nullptr;
    slots_[slot].object.reset(new T);
    slots_[slot].kind = T::kKind;
    return static_cast<T*>(open(slot, host));
  }
  // After Exchange::end(). The object is reused or destroyed.
  void release(Exchange& exchange) noexcept;

  // The exchange of this connection that asked with this token, or null if it has ended. (Generations wrap around: a
  // token that is a million requests old may name an exchange of another connection.)
  Exchange* find(std::uint64_t token, const ExchangeHost& host) const noexcept;
  Exchange* find(std::uint32_t slot, std::uint64_t serial) const noexcept;
  std::size_t open_count() const noexcept { return open_; }

  // Runs `work` with the exchange in a later turn, if it is open then. Any thread.
  void run(std::uint32_t slot, std::uint64_t serial, std::function<void(Exchange&)> work);
  // Call when the loop ends: run() does nothing from then on. Any thread.
  void close();

 private:
  static constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};
  struct Destroy {
    void operator()(Exchange* exchange) const noexcept { delete exchange; }
  };
  struct TableSlot {
    std::unique_ptr<Exchange, Destroy> object;
    std::uint64_t serial = 0;  // counts up when an exchange opens
    ExchangeKind kind = ExchangeKind::http1;
    bool open = false;
  };

  std::uint32_t empty_slot();
  Exchange* open(std::uint32_t slot, ExchangeHost& host) noexcept;

  std::mutex post_mutex_;
  Post post_;
  std::size_t exchanges_max_;
  std::vector<TableSlot> slots_;
  std::array<std::vector<std::uint32_t>, 3> spare_;  // closed slots with an object, by kind
  std::vector<std::uint32_t> empty_;                 // closed slots without one
  std::size_t open_ = 0;
};

}  // namespace weir::http
