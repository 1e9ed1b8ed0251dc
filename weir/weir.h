// Rate limits for C, and for everything that can call C. The same library as weir/limiter.h.
//
//   weir_limit limit = {60, 60 * WEIR_SECOND, 10};  // 60 a minute, at most 10 at once
//   weir_limiter* logins = weir_limiter_create(&limit, NULL, NULL);
//   weir_decision d;
//   if (!weir_spend(logins, user, strlen(user), 1, &d)) return too_many_requests(d.retry_after_ns);
//
// Times are nanoseconds in 64 bits. A key is any bytes, with their number. Strings of ours end with a zero and live as
// long as the program.
// Threads: every function may be called from any thread at any time, but a handle is destroyed alone and once.
// Errors: a function that can fail takes a weir_error and writes a sentence to it; NULL if you do not want it. Passing
// a null pointer where a handle, a key or a limit is asked for is not an error but a bug, and undefined.
#ifndef WEIR_WEIR_H_
#define WEIR_WEIR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_API __attribute__((visibility("default")))

#define WEIR_SECOND INT64_C(1000000000)

// The retry_after_ns of a cost that can never pass.
#define WEIR_NEVER INT64_C(-1)

// Charges of one weir_spend_together() or weir_spend_in_order().
#define WEIR_CHARGES_MAX 16

#ifdef __cplusplus
extern "C" {
#endif

// One limit over any number of keys.
typedef struct weir_limiter weir_limiter;

// Where the state of several limiters lives, so that they can be charged together.
typedef struct weir_buckets weir_buckets;

// `count` tokens are added every period, a bucket holds at most `burst`.
typedef struct weir_limit {
  int64_t count;
  int64_t period_ns;
  int64_t burst;
} weir_limit;

typedef struct weir_decision {
  bool allowed;
  int64_t burst;           // the whole bucket
  int64_t remaining;       // whole tokens left after this decision
  int64_t retry_after_ns;  // denied: the exact wait for the same cost, or WEIR_NEVER; allowed: 0
  int64_t reset_after_ns;  // until the bucket is full
} weir_decision;

typedef struct weir_error {
  char text[256];  // empty if all went well
} weir_error;

// All zero is the default.
typedef struct weir_options {
  uint64_t max_buckets;                // then one near to full is forgotten, and counted; 0: ten million
  int64_t (*clock_ns)(void* context);  // from 0 on, never back, below 46 years; NULL: CLOCK_BOOTTIME
  void* clock_context;
  bool names;  // keep the keys' texts, for weir_for_each()
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
  uint64_t buckets;     // in use; one that has filled up again counts until its place is needed
  uint64_t bytes;       // memory taken from the system
  uint64_t evicted;     // forgotten before they were full, for want of room
  uint64_t lost_races;  // two threads wanted the same bucket at once and one had to look again
} weir_stats;

// "0.1.0".
WEIR_API const char* weir_version(void);

// With buckets of its own. NULL if the numbers break a rule or there is no memory.
//
//   weir_error error;
//   weir_limiter* limiter = weir_limiter_create(&limit, NULL, &error);
//   if (limiter == NULL) puts(error.text);  // "burst 0 must be at least 1"
WEIR_API weir_limiter* weir_limiter_create(const weir_limit* limit, const weir_options* options, weir_error* error);

// On shared buckets, under a name that keeps its keys apart from those of other limits, whatever bytes they contain.
// The buckets' handle may be destroyed before the limiter.
//
//   weir_buckets* buckets = weir_buckets_create(NULL, NULL);
//   weir_limiter* per_address = weir_limiter_create_shared(buckets, "address", &limit, NULL);
WEIR_API weir_limiter* weir_limiter_create_shared(weir_buckets* buckets, const char* name, const weir_limit* limit,
                                                  weir_error* error);

// NULL is fine.
WEIR_API void weir_limiter_destroy(weir_limiter* limiter);

// NULL for want of memory.
WEIR_API weir_buckets* weir_buckets_create(const weir_options* options, weir_error* error);

// NULL is fine.
WEIR_API void weir_buckets_destroy(weir_buckets* buckets);

// May this pass? If so, its cost is taken; if not, nothing is written and the bucket keeps filling. A cost of 0 always
// passes; one beyond the burst, or below 0, never does. Returns decision->allowed; `decision` may be NULL.
WEIR_API bool weir_spend(weir_limiter* limiter, const char* key, size_t key_bytes, int64_t cost,
                         weir_decision* decision);

// The same for many keys, in order, far faster than one by one. decisions[i] answers keys[i].
WEIR_API void weir_spend_batch(weir_limiter* limiter, const weir_key* keys, size_t count, int64_t cost,
                               weir_decision* decisions);

// Would it pass? Writes nothing; remaining and reset_after_ns are the bucket's as it stands.
WEIR_API bool weir_peek(const weir_limiter* limiter, const char* key, size_t key_bytes, int64_t cost,
                        weir_decision* decision);

// Gives tokens back, never beyond full; answers with the bucket as it then stands. `decision` may be NULL.
WEIR_API void weir_refund(weir_limiter* limiter, const char* key, size_t key_bytes, int64_t cost,
                          weir_decision* decision);

// Fills the bucket; false if it was full already.
WEIR_API bool weir_reset(weir_limiter* limiter, const char* key, size_t key_bytes);

// All or none: if one limit denies, none is charged. decisions[i] answers charges[i]; *strictest is the index of the
// one that speaks for all. Both may be NULL. The same bucket twice is charged once with the summed cost. False with a
// text in `error`: there are more than WEIR_CHARGES_MAX, or a limiter is not on these buckets; nothing was charged and
// nothing else written.
//
//   weir_charge charges[] = {{per_address, {address, strlen(address)}, 1}, {per_account, {user, strlen(user)}, 1}};
//   weir_decision decisions[2];
//   size_t strictest;
//   if (!weir_spend_together(buckets, charges, 2, decisions, &strictest, NULL))
//     return too_many_requests(decisions[strictest].retry_after_ns);
WEIR_API bool weir_spend_together(weir_buckets* buckets, const weir_charge* charges, size_t count,
                                  weir_decision* decisions, size_t* strictest, weir_error* error);

// One after another, up to the first denial: limits before it stay charged, those behind it are untouched, and their
// decisions are all zero. Else as above.
WEIR_API bool weir_spend_in_order(weir_buckets* buckets, const weir_charge* charges, size_t count,
                                  weir_decision* decisions, size_t* strictest, weir_error* error);

// From now on this key has other numbers than the limit's; its bucket keeps what was spent. False, and nothing has
// changed, if the numbers break a rule, there are a million overrides already, or there is no memory.
WEIR_API bool weir_set_override(weir_limiter* limiter, const char* key, size_t key_bytes, const weir_limit* limit,
                                weir_error* error);

// Back to the limit's numbers; false if there was no override.
WEIR_API bool weir_remove_override(weir_limiter* limiter, const char* key, size_t key_bytes);

// Visits the buckets of this limit that are not full, if names are kept. The key lives until `visit` returns; `visit`
// may call the limiter.
WEIR_API void weir_for_each(const weir_limiter* limiter,
                            void (*visit)(void* context, const char* key, size_t key_bytes,
                                          const weir_decision* standing),
                            void* context);

// Optional, now and then, from any thread: forgets buckets that are full again, gives memory back and makes some ready
// for growth, a bounded piece of it per call. True when it has come round once.
WEIR_API bool weir_limiter_maintain(weir_limiter* limiter);
WEIR_API bool weir_buckets_maintain(weir_buckets* buckets);

// Of the buckets, which other limiters may share.
WEIR_API void weir_limiter_stats(const weir_limiter* limiter, weir_stats* stats);
WEIR_API void weir_buckets_stats(const weir_buckets* buckets, weir_stats* stats);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // WEIR_WEIR_H_
