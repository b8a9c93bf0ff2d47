// streamload: a mock upstream that speaks OpenAI chat completions, and a load generator. Loopback only.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "common.h"

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_TIMERSLACK, 1000ul); // 1 µs, in place of 50
  raise_descriptor_limit();
  if (argc > 1 && !strcmp(argv[1], "mock")) return mock_main(argc - 1, argv + 1);
  if (argc > 1 && !strcmp(argv[1], "load")) return load_main(argc - 1, argv + 1);
  fputs("usage: streamload mock --port PORT\n"
        "       streamload load --port PORT --model MODEL [--connections N] [--seconds S] [--warm S] [--requests N] [--unstreamed]\n"
        "                       [--chunks N] [--bytes N] [--spread MS] [--gather MS] [--hold] [--path PATH] [--header 'Name: value']\n"
        "models of the mock: chunks-N (as fast as they go)  paced-N-MS  held (one chunk, then nothing)  image-MB (one line)\n",
        stderr);
  return 2;
}
