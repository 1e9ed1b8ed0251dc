// A C program of somebody else's, built against the installed package.
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

int main(void) {
  const weir_limit limit = {1, WEIR_SECOND, 3};
  weir_error error;
  weir_limiter* limiter = weir_limiter_create(&limit, NULL, &error);
  if (limiter == NULL) {
    puts(error.text);
    return 1;
  }
  int allowed = 0;
  for (int i = 0; i < 10; ++i) allowed += weir_spend(limiter, "client", strlen("client"), 1, NULL) ? 1 : 0;
  weir_limiter_destroy(limiter);
  printf("weir %s let %d of 10 pass\n", weir_version(), allowed);
  return allowed == 3 ? 0 : 1;
}
