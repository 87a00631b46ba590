#define _GNU_SOURCE
#include "provider.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

__thread struct sealeddb_page_failures sealeddb_page_failures;

// The functions of SQLCipher's provider, in the order that every version from 4.5 to 4.19 has. A function that is not
// called here is declared without its type.
typedef void (*any_function)(void);
typedef int (*hmac_function)(
    void *context, int algorithm, const unsigned char *key, int key_size, const unsigned char *in, int in_size,
    const unsigned char *in2, int in2_size, unsigned char *out);
typedef int (*cipher_function)(
    void *context, int mode, const unsigned char *key, int key_size, const unsigned char *iv, const unsigned char *in,
    int in_size, unsigned char *out);

struct provider {
    any_function init, shutdown;
    const char *(*name)(void *context);
    any_function add_random, random;
    hmac_function hmac;
    any_function kdf;
    cipher_function cipher;
    any_function cipher_name, key_size, iv_size, block_size;
    int (*hmac_size)(void *context, int algorithm);
    any_function context_init, context_free, fips_status, version;
    // Later versions keep the link to the next provider here. The rest is space for members that versions after those
    // may add.
    void *reserved[15];
};

_Static_assert(offsetof(struct provider, reserved) == 17 * sizeof(void *), "SQLCipher has 17 functions");
_Static_assert(sizeof(struct provider) == 256, "");

enum { failure = 1, decrypting = 0, iv_size = 16 };

static struct provider stock;
static sealeddb_zeros_are_stored are_zeros_stored;
static int is_neutral;

static void note(unsigned int page, enum sealeddb_page_cause cause) {
    sealeddb_page_failures.count++;
    sealeddb_page_failures.page = page;
    sealeddb_page_failures.cause = cause;
}

static int is_zero(const unsigned char *bytes, size_t count) {
    return count == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0);
}

// `in` holds the ciphertext of a page with its IV, and `in2` the page number. When a page is read, `in` lies in the
// page itself, and the stored HMAC follows it. When a page is written, `out` points right behind `in`.
static int hmac(
    void *context, int algorithm, const unsigned char *key, int key_size, const unsigned char *in, int in_size,
    const unsigned char *in2, int in2_size, unsigned char *out
) {
    const struct sealeddb_page_failures *failures = &sealeddb_page_failures;
    int is_written = out == in + in_size;
    if (!is_neutral && is_written && failures->stops_writing && failures->count != failures->stopping_count)
        return failure;
    int result = stock.hmac(context, algorithm, key, key_size, in, in_size, in2, in2_size, out);
    if (is_neutral || in2_size != 4 || is_written) return result;
    unsigned int page = in2[0] | in2[1] << 8 | in2[2] << 16 | (unsigned int)in2[3] << 24;
    if (result != 0) {
        note(page, sealeddb_page_not_decrypted);
        return result;
    }
    int size = stock.hmac_size(context, algorithm);
    const unsigned char *stored = in + in_size;
    if (size > 0 && memcmp(stored, out, (size_t)size) == 0) return result;
    if (failures->has_read_failed) {
        // This check comes before the search for stored zeros, because that search reads from files too.
        note(page, sealeddb_page_not_read);
        return failure;
    }
    // The reserved size of a page is a multiple of the cipher's block size.
    int reserved_size = (iv_size + size + 15) / 16 * 16;
    int page_size = in_size - iv_size + reserved_size;
    if (page == 1 || !is_zero(in, (size_t)page_size)) {
        note(page, sealeddb_page_is_damaged);
        return result;
    }
    void *connection = failures->connection;
    int answer = connection == NULL ? 0 : are_zeros_stored(connection, page, page_size);
    if (answer == 0) return result;
    // In a store with auto_vacuum, SQLCipher would accept this page.
    note(page, answer < 0 ? sealeddb_page_not_read : sealeddb_page_is_damaged);
    return failure;
}

static int cipher(
    void *context, int mode, const unsigned char *key, int key_size, const unsigned char *iv, const unsigned char *in,
    int in_size, unsigned char *out
) {
    int result = stock.cipher(context, mode, key, key_size, iv, in, in_size, out);
    if (!is_neutral && result != 0 && mode == decrypting) note(0, sealeddb_page_not_decrypted);
    return result;
}

const char *sealeddb_install_provider(const char *object, sealeddb_zeros_are_stored zeros_are_stored) {
    void *library = dlopen(object, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) return "the engine is no shared library";
    // The library is never closed, because its functions are in use from now on.
    struct provider *(*get)(void) = (struct provider *(*)(void))dlsym(library, "sqlcipher_get_provider");
    int (*put)(struct provider *) = (int (*)(struct provider *))dlsym(library, "sqlcipher_register_provider");
    void *(*allocate)(unsigned long long) = (void *(*)(unsigned long long))dlsym(library, "sqlcipher_malloc");
    if (get == NULL || put == NULL || allocate == NULL) return "the engine does not let its provider be changed";
    const struct provider *present = get();
    if (present == NULL) return "the engine has no provider";
    struct provider copy = {0};
    memcpy(&copy, present, offsetof(struct provider, reserved));
    if (copy.name == NULL || copy.hmac == NULL || copy.cipher == NULL || copy.hmac_size == NULL
        || strcmp(copy.name(NULL), "openssl") != 0) return "the engine's provider is not OpenSSL";
    stock = copy;
    are_zeros_stored = zeros_are_stored;
    copy.hmac = hmac;
    copy.cipher = cipher;
    // SQLCipher takes ownership of the provider and frees it with its own allocator.
    struct provider *ours = allocate(sizeof *ours);
    if (ours == NULL) return "no memory";
    memcpy(ours, &copy, sizeof copy);
    return put(ours) == 0 ? NULL : "the engine did not take the provider";
}

void sealeddb_neutralize_provider(void) { is_neutral = 1; }
