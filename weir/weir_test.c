// The C face from C: compiled as C11, linked with the shared library.
#include "weir/weir.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEIR_CHECK(x) ((x) ? (void)0 : failed(#x, __LINE__))

static const weir_limit kThree = {3, WEIR_SECOND, 3};
static const weir_limit kTen = {10, WEIR_SECOND, 10};

static void failed(const char* what, int line) {
  fprintf(stderr, "weir_test.c:%d: not true: %s\n", line, what);
  exit(1);
}

static int64_t read_clock(void* context) {
  return *(const int64_t*)context;
}

static bool spend(weir_limiter* limiter, const char* key) {
  return weir_spend(limiter, key, strlen(key), 1, NULL);
}

static int64_t remaining(const weir_limiter* limiter, const char* key) {
  weir_decision standing;
  weir_peek(limiter, key, strlen(key), 0, &standing);
  return standing.remaining;
}

static void holds_the_worked_example_to_the_nanosecond(void) {
  int64_t now = 0;
  const weir_options options = {.clock_ns = read_clock, .clock_context = &now};
  const weir_limit twenty = {20, WEIR_SECOND, 20};
  weir_limiter* limiter = weir_limiter_create(&twenty, &options, NULL);
  WEIR_CHECK(limiter != NULL);
  weir_decision d;
  WEIR_CHECK(weir_spend(limiter, "a", 1, 1, &d));
  WEIR_CHECK(d.allowed && d.burst == 20 && d.remaining == 19 && d.retry_after_ns == 0 && d.reset_after_ns == 50000000);
  now = 5000000;
  WEIR_CHECK(weir_spend(limiter, "a", 1, 1, &d));
  WEIR_CHECK(d.remaining == 18 && d.reset_after_ns == 95000000);
  for (int i = 0; i < 18; ++i) WEIR_CHECK(spend(limiter, "a"));
  now = 49000000;
  WEIR_CHECK(!weir_spend(limiter, "a", 1, 1, &d));
  WEIR_CHECK(!d.allowed && d.remaining == 0 && d.retry_after_ns == 1000000);
  now = 50000000;
  WEIR_CHECK(weir_spend(limiter, "a", 1, 1, &d));
  weir_limiter_destroy(limiter);
}

static void peeks_refunds_and_resets(void) {
  weir_limiter* limiter = weir_limiter_create(&kThree, NULL, NULL);
  weir_decision d;
  WEIR_CHECK(weir_spend(limiter, "a", 1, 3, &d));
  WEIR_CHECK(!weir_peek(limiter, "a", 1, 3, &d) && d.retry_after_ns > 0);
  WEIR_CHECK(!weir_peek(limiter, "a", 1, 4, &d) && d.retry_after_ns == WEIR_NEVER);
  WEIR_CHECK(!weir_spend(limiter, "b", 1, -1, &d) && d.retry_after_ns == WEIR_NEVER && d.remaining == 3);
  weir_refund(limiter, "a", 1, 100, &d);
  WEIR_CHECK(d.remaining == 3);
  WEIR_CHECK(weir_spend(limiter, NULL, 0, 3, NULL));
  WEIR_CHECK(weir_reset(limiter, NULL, 0));
  WEIR_CHECK(!weir_reset(limiter, NULL, 0));
  weir_limiter_destroy(limiter);
}

static void answers_a_batch_of_any_size_like_singles(void) {
  int64_t now = WEIR_SECOND;
  const weir_options options = {.clock_ns = read_clock, .clock_context = &now};
  weir_limiter* one = weir_limiter_create(&kThree, &options, NULL);
  weir_limiter* many = weir_limiter_create(&kThree, &options, NULL);
  enum { kKeys = 200 };
  char texts[kKeys][8];
  weir_key keys[kKeys];
  weir_decision decisions[kKeys];
  for (int i = 0; i < kKeys; ++i) {
    snprintf(texts[i], sizeof texts[i], "%d", i % 50);
    keys[i] = (weir_key){texts[i], strlen(texts[i])};
  }
  weir_spend_batch(many, keys, kKeys, 1, decisions);
  for (int i = 0; i < kKeys; ++i) {
    weir_decision d;
    WEIR_CHECK(weir_spend(one, keys[i].text, keys[i].bytes, 1, &d) == decisions[i].allowed);
    WEIR_CHECK(d.remaining == decisions[i].remaining && d.retry_after_ns == decisions[i].retry_after_ns);
  }
  weir_limiter_destroy(one);
  weir_limiter_destroy(many);
}

static void charges_several_at_once(void) {
  weir_error error;
  int64_t now = WEIR_SECOND;
  const weir_options options = {.clock_ns = read_clock, .clock_context = &now};
  weir_buckets* buckets = weir_buckets_create(&options, &error);
  WEIR_CHECK(buckets != NULL && error.text[0] == '\0');
  weir_limiter* a = weir_limiter_create_shared(buckets, "a:b", &kThree, NULL);
  weir_limiter* b = weir_limiter_create_shared(buckets, "a", &kTen, NULL);
  const weir_charge charges[] = {{b, {"b:c", 3}, 1}, {a, {"c", 1}, 2}};
  weir_decision decisions[2];
  size_t strictest = 9;
  WEIR_CHECK(weir_spend_together(buckets, charges, 2, decisions, &strictest, &error));
  WEIR_CHECK(decisions[0].remaining == 9 && decisions[1].remaining == 1 && strictest == 1);
  WEIR_CHECK(!weir_spend_together(buckets, charges, 2, decisions, &strictest, &error));
  WEIR_CHECK(error.text[0] == '\0' && !decisions[1].allowed && strictest == 1 && remaining(b, "b:c") == 9);
  WEIR_CHECK(!weir_spend_in_order(buckets, charges, 2, NULL, NULL, NULL));
  WEIR_CHECK(remaining(b, "b:c") == 8);
  weir_buckets_destroy(buckets);
  WEIR_CHECK(spend(a, "c"));  // a limiter keeps its buckets
  weir_limiter_destroy(a);
  weir_limiter_destroy(b);
}

static void refuses_charges_that_were_asked_wrongly(void) {
  weir_error error;
  weir_buckets* buckets = weir_buckets_create(NULL, NULL);
  weir_limiter* here = weir_limiter_create_shared(buckets, "a", &kTen, NULL);
  weir_limiter* elsewhere = weir_limiter_create(&kTen, NULL, NULL);
  weir_charge charges[WEIR_CHARGES_MAX + 1];
  for (int i = 0; i <= WEIR_CHARGES_MAX; ++i) charges[i] = (weir_charge){here, {"x", 1}, 0};
  WEIR_CHECK(weir_spend_together(buckets, charges, WEIR_CHARGES_MAX, NULL, NULL, &error));
  WEIR_CHECK(!weir_spend_together(buckets, charges, WEIR_CHARGES_MAX + 1, NULL, NULL, &error));
  WEIR_CHECK(strcmp(error.text, "17 charges are more than 16") == 0);
  charges[1].limiter = elsewhere;
  charges[0].cost = 1;
  WEIR_CHECK(!weir_spend_in_order(buckets, charges, 2, NULL, NULL, &error));
  WEIR_CHECK(strcmp(error.text, "charge 1 has a limiter that is not on these buckets") == 0);
  WEIR_CHECK(remaining(here, "x") == 10);
  weir_limiter_destroy(here);
  weir_limiter_destroy(elsewhere);
  weir_buckets_destroy(buckets);
}

static void overrides_single_keys(void) {
  weir_error error;
  weir_limiter* limiter = weir_limiter_create(&kThree, NULL, NULL);
  WEIR_CHECK(weir_set_override(limiter, "vip", 3, &kTen, &error));
  WEIR_CHECK(remaining(limiter, "vip") == 10 && remaining(limiter, "other") == 3);
  const weir_limit bad = {1, WEIR_SECOND, 0};
  WEIR_CHECK(!weir_set_override(limiter, "vip", 3, &bad, &error));
  WEIR_CHECK(strcmp(error.text, "burst 0 must be at least 1") == 0);
  WEIR_CHECK(weir_remove_override(limiter, "vip", 3) && !weir_remove_override(limiter, "vip", 3));
  WEIR_CHECK(remaining(limiter, "vip") == 3);
  weir_limiter_destroy(limiter);
}

static void says_why_a_limiter_cannot_be_made(void) {
  weir_error error;
  const weir_limit bad = {0, WEIR_SECOND, 1};
  WEIR_CHECK(weir_limiter_create(&bad, NULL, &error) == NULL);
  WEIR_CHECK(strcmp(error.text, "count 0 must be at least 1") == 0);
  WEIR_CHECK(weir_limiter_create(&bad, NULL, NULL) == NULL);
  const weir_options options = {.max_buckets = 1000000001};
  WEIR_CHECK(weir_buckets_create(&options, &error) == NULL && strstr(error.text, "max_buckets 1000000001") != NULL);
  weir_limiter_destroy(NULL);
  weir_buckets_destroy(NULL);
}

static void count_visit(void* context, const char* key, size_t key_bytes, const weir_decision* standing) {
  WEIR_CHECK(key_bytes == 1 && key[0] == 'a' && standing->remaining == 2);
  ++*(int*)context;
}

static void lists_counts_and_maintains(void) {
  int64_t now = WEIR_SECOND;
  const weir_options options = {.max_buckets = 100, .names = true, .clock_ns = read_clock, .clock_context = &now};
  weir_limiter* limiter = weir_limiter_create(&kThree, &options, NULL);
  spend(limiter, "a");
  int visits = 0;
  weir_for_each(limiter, count_visit, &visits);
  WEIR_CHECK(visits == 1);
  weir_stats stats;
  weir_limiter_stats(limiter, &stats);
  WEIR_CHECK(stats.buckets == 1 && stats.bytes > 0 && stats.evicted == 0);
  for (int i = 0; i < 300; ++i) weir_spend(limiter, (const char*)&i, sizeof i, 1, NULL);
  weir_limiter_stats(limiter, &stats);
  WEIR_CHECK(stats.buckets <= 100 && stats.evicted == 201);
  now += 10 * WEIR_SECOND;
  while (!weir_limiter_maintain(limiter)) {
  }
  weir_limiter_stats(limiter, &stats);
  WEIR_CHECK(stats.buckets == 0);
  weir_limiter_destroy(limiter);
}

enum { kThreads = 8, kSpends = 20000 };

static void* spend_many(void* context) {
  weir_limiter* limiter = context;
  intptr_t allowed = 0;
  for (int i = 0; i < kSpends; ++i) allowed += spend(limiter, "hot") ? 1 : 0;
  return (void*)allowed;
}

static void admits_exactly_the_burst_to_many_threads(void) {
  const weir_limit limit = {kThreads * kSpends / 2, 3600 * 24 * WEIR_SECOND, kThreads * kSpends / 2};
  int64_t now = WEIR_SECOND;
  const weir_options options = {.clock_ns = read_clock, .clock_context = &now};
  weir_limiter* limiter = weir_limiter_create(&limit, &options, NULL);
  pthread_t threads[kThreads];
  for (int t = 0; t < kThreads; ++t) WEIR_CHECK(pthread_create(&threads[t], NULL, spend_many, limiter) == 0);
  intptr_t allowed = 0;
  for (int t = 0; t < kThreads; ++t) {
    void* result = NULL;
    WEIR_CHECK(pthread_join(threads[t], &result) == 0);
    allowed += (intptr_t)result;
  }
  WEIR_CHECK(allowed == limit.burst);
  weir_limiter_destroy(limiter);
}

int main(void) {
  WEIR_CHECK(strchr(weir_version(), '.') != NULL);
  holds_the_worked_example_to_the_nanosecond();
  peeks_refunds_and_resets();
  answers_a_batch_of_any_size_like_singles();
  charges_several_at_once();
  refuses_charges_that_were_asked_wrongly();
  overrides_single_keys();
  says_why_a_limiter_cannot_be_made();
  lists_counts_and_maintains();
  admits_exactly_the_burst_to_many_threads();
  puts("weir_test.c: all of it holds");
  return 0;
}
