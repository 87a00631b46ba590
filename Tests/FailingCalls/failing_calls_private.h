#ifndef FAILING_CALLS_PRIVATE_H
#define FAILING_CALLS_PRIVATE_H

/// Counts a call of OpenSSL, and says whether it fails.
int failing_calls_fails_openssl(const char *call);

#endif
