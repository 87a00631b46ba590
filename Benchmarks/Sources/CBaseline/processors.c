#define _GNU_SOURCE
#include "CBaseline.h"

#include <sched.h>

int baseline_processor_count(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int baseline_use_processors(int count) {
    // Those that the first caller had. Only the thread that measures calls this.
    static cpu_set_t all;
    static bool is_known;
    if (!is_known && sched_getaffinity(0, sizeof all, &all) != 0) return 0;
    is_known = true;
    cpu_set_t set = all;
    for (int number = 0, used = 0; number < CPU_SETSIZE && count > 0; number++) {
        if (!CPU_ISSET(number, &set)) continue;
        if (used < count) used++;
        else CPU_CLR(number, &set);
    }
    return sched_setaffinity(0, sizeof set, &set) == 0;
}
