// When a test of the process last began or ended, whichever test target it belongs to. Any thread may call these.

#ifndef HangClock_h
#define HangClock_h

/// A test has begun or ended just now.
void hang_clock_restart(void);

/// For how many seconds no test has begun or ended.
double hang_clock_seconds(void);

#endif
