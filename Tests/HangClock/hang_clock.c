#include "HangClock.h"

#include <stdatomic.h>
#include <time.h>

static _Atomic long long last;

static long long now(void) {
    struct timespec time;
    // This fails only for clocks that do not exist.
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

void hang_clock_restart(void) { atomic_store(&last, now()); }

double hang_clock_seconds(void) { return (double)(now() - atomic_load(&last)) / 1e9; }
