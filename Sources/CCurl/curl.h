// What repositories in object stores take from libcurl. Its functions with any number of arguments cannot be called from
// Swift: each has one function here for each type of value.

#ifndef SEALEDDB_CURL_H
#define SEALEDDB_CURL_H

#if !__has_include(<curl/curl.h>)
#error "The trait ObjectStores needs libcurl's headers, and there are none. Run scripts/setup of SealedDB, or: apt-get install libcurl4-openssl-dev"
#else

#include <curl/curl.h>
#include <stdint.h>

// Signing, and that it hashes the body as S3 wants it.
#if LIBCURL_VERSION_NUM < 0x075700
#error "The trait ObjectStores needs libcurl 7.87 or later"
#endif

// https://curl.se/libcurl/c/curl_easy_setopt.html
static inline CURLcode sealeddb_curl_set_number(CURL *curl, CURLoption option, long value) {
    return curl_easy_setopt(curl, option, value);
}
static inline CURLcode sealeddb_curl_set_size(CURL *curl, CURLoption option, int64_t value) {
    return curl_easy_setopt(curl, option, (curl_off_t)value);
}
static inline CURLcode sealeddb_curl_set_text(CURL *curl, CURLoption option, const char *value) {
    return curl_easy_setopt(curl, option, value);
}
static inline CURLcode sealeddb_curl_set_pointer(CURL *curl, CURLoption option, void *value) {
    return curl_easy_setopt(curl, option, value);
}
static inline CURLcode sealeddb_curl_set_list(CURL *curl, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(curl, option, value);
}
typedef size_t (*sealeddb_curl_transfer)(char *bytes, size_t size, size_t count, void *context);
static inline CURLcode sealeddb_curl_set_transfer(CURL *curl, CURLoption option, sealeddb_curl_transfer value) {
    return curl_easy_setopt(curl, option, value);
}
typedef int (*sealeddb_curl_progress)(void *context, int64_t a, int64_t b, int64_t c, int64_t d);
static inline CURLcode sealeddb_curl_set_progress(CURL *curl, CURLoption option, sealeddb_curl_progress value) {
    return curl_easy_setopt(curl, option, value);
}
typedef int (*sealeddb_curl_seek)(void *context, int64_t offset, int origin);
static inline CURLcode sealeddb_curl_set_seek(CURL *curl, CURLoption option, sealeddb_curl_seek value) {
    return curl_easy_setopt(curl, option, value);
}

// Once in a process, before anything else of libcurl. https://curl.se/libcurl/c/curl_global_init.html
static inline CURLcode sealeddb_curl_begin(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }

static const long sealeddb_curl_tls_1_2 = CURL_SSLVERSION_TLSv1_2;

// https://curl.se/libcurl/c/curl_easy_getinfo.html
static inline CURLcode sealeddb_curl_number(CURL *curl, CURLINFO info, long *value) {
    return curl_easy_getinfo(curl, info, value);
}

#endif
#endif
