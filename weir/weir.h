// Rate limits for C and for any language that can call C. The same library as weir/limiter.h.
//
//   weir_limit limit = {60, 60 * WEIR_SECOND, 10};  // 60 a minute, at most 10 at once
//   weir_limiter* logins = weir_limiter_create(&limit, NULL, NULL);
//   weir_decision d;
//   if (!weir_spend(logins, user, strlen(user), 1, &d)) return too_many_requests(d.retry_after_ns);
//
// Times are nanoseconds in 64 bits. A key is any bytes plus a length. Strings returned by this library are
// null-terminated and have static storage duration.
// Threads: every function may be called from any thread at any time. Destroy a handle only once, when no other thread
// is using it.
// Errors: a function that can fail takes a weir_error and writes a message to it; pass NULL if you do not need the
// message. Passing NULL for a required handle, key or limit is undefined behavior.
#ifndef WEIR_WEIR_H_
#define WEIR_WEIR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_API __attribute__((visibility("default")))

#define WEIR_SECOND INT64_C(1000000000)

// The retry_after_ns of a cost that can never be allowed.
#define WEIR_NEVER INT64_C(-1)

// Maximum number of charges in one weir_spend_together() or weir_spend_in_order().
#define WEIR_CHARGES_MAX 16

#ifdef __cplusplus
extern "C" {
#endif

// One limit over any number of keys.
typedef struct weir_limiter weir_limiter;

// The shared state of several limiters, so that they can be charged together.
typedef struct weir_buckets weir_buckets;

// `count` tokens are added every period; a bucket holds at most `burst`.
typedef struct weir_limit {
  int64_t count;
  int64_t period_ns;
  int64_t burst;
} weir_limit;

typedef struct weir_decision {
  bool allowed;
  int64_t burst;           // the bucket's size
  int64_t remaining;       // whole tokens left after this decision
  int64_t retry_after_ns;  // denied: the exact wait for the same cost, or WEIR_NEVER; allowed: 0
  int64_t reset_after_ns;  // until the bucket is full
} weir_decision;

typedef struct weir_error {
  char text[256];  // empty on success
} weir_error;

// Zero-initialize it for the defaults.
typedef struct weir_options {
  uint64_t max_buckets;                // when reached, a nearly full bucket is evicted, and counted; 0: ten million
  int64_t (*clock_ns)(void* context);  // at least 0, never decreases, below 46 years; NULL: CLOCK_BOOTTIME
  void* clock_context;
  bool names;  // keep the text of each key, for weir_for_each()
} weir_options;

typedef struct weir_key {
  const char* text;
  size_t bytes;
} weir_key;

// One of several charges made at once.
typedef struct weir_charge {
  weir_limiter* limiter;
  weir_key key;
  int64_t cost;
} weir_charge;

typedef struct weir_stats {
  uint64_t buckets;     // in use; a bucket that is full again counts until it is cleaned up or replaced
  uint64_t bytes;       // memory allocated from the system
  uint64_t evicted;     // buckets forgotten before they were full because the table was full
  uint64_t lost_races;  // times a thread had to retry because another changed the same bucket
} weir_stats;

// "0.1.0".
WEIR_API const char* weir_version(void);

// Creates a limiter with its own buckets. Returns NULL if the limit is invalid or memory runs out.
//
//   weir_error error;
//   weir_limiter* limiter = weir_limiter_create(&limit, NULL, &error);
//   if (limiter == NULL) puts(error.text);  // "burst 0 must be at least 1"
WEIR_API weir_limiter* weir_limiter_create(const weir_limit* limit, const weir_options* options, weir_error* error);

// Creates a limiter on shared buckets. Its name separates its keys from those of other limits, whatever bytes the keys
// contain. The buckets' handle may be destroyed before the limiter.
//
//   weir_buckets* buckets = weir_buckets_create(NULL, NULL);
//   weir_limiter* per_address = weir_limiter_create_shared(buckets, "address", &limit, NULL);
WEIR_API weir_limiter* weir_limiter_create_shared(weir_buckets* buckets, const char* name, const weir_limit* limit,
                                                  weir_error* error);

// Does nothing if `limiter` is NULL.
WEIR_API void weir_limiter_destroy(weir_limiter* limiter);

// Returns NULL if memory runs out.
WEIR_API weir_buckets* weir_buckets_create(const weir_options* options, weir_error* error);

// Does nothing if `buckets` is NULL. Limiters on the buckets stay valid.
WEIR_API void weir_buckets_destroy(weir_buckets* buckets);

// Takes `cost` tokens if the bucket has them. A denial takes nothing, and the bucket keeps filling. A cost of 0 is
// always allowed; a cost above the burst or below 0 never is. Returns decision->allowed; `decision` may be NULL.
WEIR_API bool weir_spend(weir_limiter* limiter, const char* key, size_t key_bytes, int64_t cost,
                         weir_decision* decision);

// Spends from many keys, in order; much faster than separate calls. decisions[i] is for keys[i].
WEIR_API void weir_spend_batch(weir_limiter* limiter, const weir_key* keys, size_t count, int64_t cost,
                               weir_decision* decisions);

// Returns whether the cost would be allowed, and takes nothing. `remaining` and `reset_after_ns` describe the bucket's
// current state.
WEIR_API bool weir_peek(const weir_limiter* limiter, const char* key, size_t key_bytes, int64_t cost,
                        weir_decision* decision);

// Returns tokens to the bucket, but never more than its burst. `decision` then describes the bucket; it may be NULL.
WEIR_API void weir_refund(weir_limiter* limiter, const char* key, size_t key_bytes, int64_t cost,
                          weir_decision* decision);

// Fills the bucket. Returns false if it was already full.
WEIR_API bool weir_reset(weir_limiter* limiter, const char* key, size_t key_bytes);

// Charges all or none: if one limit denies, none is charged. decisions[i] is for charges[i]; *strictest is the index of
// the decision to report. Both may be NULL. A bucket that appears twice is charged once with the summed cost. Returns
// whether the request is allowed. Also returns false, with a message in `error`, if there are more than
// WEIR_CHARGES_MAX charges or a limiter is not on these buckets; then nothing is charged and nothing else is written.
//
//   weir_charge charges[] = {{per_address, {address, strlen(address)}, 1}, {per_account, {user, strlen(user)}, 1}};
//   weir_decision decisions[2];
//   size_t strictest;
//   if (!weir_spend_together(buckets, charges, 2, decisions, &strictest, NULL))
//     return too_many_requests(decisions[strictest].retry_after_ns);
WEIR_API bool weir_spend_together(weir_buckets* buckets, const weir_charge* charges, size_t count,
                                  weir_decision* decisions, size_t* strictest, weir_error* error);

// Charges one after another and stops at the first denial. Limits before it stay charged. Limits after it are not
// charged, and their decisions are all zero. Otherwise like weir_spend_together().
WEIR_API bool weir_spend_in_order(weir_buckets* buckets, const weir_charge* charges, size_t count,
                                  weir_decision* decisions, size_t* strictest, weir_error* error);

// Gives this key its own limit from now on; what was spent stays spent. Returns false and changes nothing if the limit
// is invalid, there are already a million overrides, or memory runs out.
WEIR_API bool weir_set_override(weir_limiter* limiter, const char* key, size_t key_bytes, const weir_limit* limit,
                                weir_error* error);

// Applies the limiter's limit to this key again. Returns false if there was no override.
WEIR_API bool weir_remove_override(weir_limiter* limiter, const char* key, size_t key_bytes);

// Visits this limit's buckets that are not full; requires weir_options.names. The key is valid until `visit` returns.
// `visit` may call the limiter.
WEIR_API void weir_for_each(const weir_limiter* limiter,
                            void (*visit)(void* context, const char* key, size_t key_bytes,
                                          const weir_decision* standing),
                            void* context);

// Optional maintenance; call it periodically from any thread. Forgets buckets that are full again, returns memory to
// the system and prepares memory for growth. Each call does a bounded amount of work; returns true when a full pass is
// complete.
WEIR_API bool weir_limiter_maintain(weir_limiter* limiter);
WEIR_API bool weir_buckets_maintain(weir_buckets* buckets);

// Statistics of the buckets, which other limiters may share.
WEIR_API void weir_limiter_stats(const weir_limiter* limiter, weir_stats* stats);
WEIR_API void weir_buckets_stats(const weir_buckets* buckets, weir_stats* stats);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // WEIR_WEIR_H_
