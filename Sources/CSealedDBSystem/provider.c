#define _GNU_SOURCE
#include "provider.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "page_contexts.h"

__thread struct sealeddb_page_failures sealeddb_page_failures;

// The functions of SQLCipher's provider, in the order that every version from 4.5 to 4.19 has. The first two take no
// codec's context, and are not called here.
struct provider {
    void (*init)(void);
    void (*shutdown)(void);
    const char *(*name)(void *context);
    int (*add_random)(void *context, const void *bytes, int count);
    int (*random)(void *context, void *bytes, int count);
    sealeddb_hmac_function hmac;
    int (*kdf)(
        void *context, int algorithm, const unsigned char *passphrase, int passphrase_size, const unsigned char *salt,
        int salt_size, int iterations, int key_size, unsigned char *key);
    sealeddb_cipher_function cipher;
    const char *(*cipher_name)(void *context);
    int (*key_size)(void *context);
    int (*iv_size)(void *context);
    int (*block_size)(void *context);
    int (*hmac_size)(void *context, int algorithm);
    int (*context_init)(void **context);
    int (*context_free)(void **context);
    int (*fips_status)(void *context);
    const char *(*version)(void *context);
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

// Why contexts are not kept; NULL if they are. Any thread may read it while another sets it.
static _Atomic(const char *) contexts_problem = "the provider is not installed";
static struct sealeddb_openssl openssl;

// What SQLCipher passes as a codec's context, for codecs that were made after the installation. Earlier ones have
// functions and contexts of their own provider.
struct codec_context {
    // Its own address tells it from another one.
    struct codec_context *self;
    void *stock;
    struct sealeddb_page_contexts *contexts;
};

static struct codec_context *own(void *context) {
    struct codec_context *codec = context;
    return codec != NULL && codec->self == codec ? codec : NULL;
}

// What SQLCipher's own functions take.
static void *of_stock(void *context) {
    const struct codec_context *codec = own(context);
    return codec == NULL ? context : codec->stock;
}

// NULL if this codec has none, or must not use them any more.
static struct sealeddb_page_contexts *contexts_of(void *context) {
    struct codec_context *codec = own(context);
    if (codec == NULL || codec->contexts == NULL) return NULL;
    if (contexts_problem == NULL) return codec->contexts;
    sealeddb_free_page_contexts(codec->contexts);
    codec->contexts = NULL;
    return NULL;
}

static int context_init(void **context) {
    int result = stock.context_init(context);
    if (result != 0 || contexts_problem != NULL) return result;
    struct codec_context *codec = malloc(sizeof *codec);
    struct sealeddb_page_contexts *contexts = sealeddb_make_page_contexts(&openssl);
    if (codec == NULL || contexts == NULL) {
        // The codec can do without.
        free(codec);
        sealeddb_free_page_contexts(contexts);
        return result;
    }
    *codec = (struct codec_context){.self = codec, .stock = *context, .contexts = contexts};
    *context = codec;
    return result;
}

static int context_free(void **context) {
    struct codec_context *codec = context == NULL ? NULL : own(*context);
    if (codec == NULL) return stock.context_free(context);
    // If `context` is `codec` itself, it lies in the memory that is freed here.
    *context = NULL;
    void *inner = codec->stock;
    sealeddb_free_page_contexts(codec->contexts);
    free(codec);
    return stock.context_free(&inner);
}

static const char *name(void *context) { return stock.name(of_stock(context)); }

static int add_random(void *context, const void *bytes, int count) {
    return stock.add_random(of_stock(context), bytes, count);
}

static int get_random(void *context, void *bytes, int count) { return stock.random(of_stock(context), bytes, count); }

static int kdf(
    void *context, int algorithm, const unsigned char *passphrase, int passphrase_size, const unsigned char *salt,
    int salt_size, int iterations, int key_size, unsigned char *key
) {
    return stock.kdf(
        of_stock(context), algorithm, passphrase, passphrase_size, salt, salt_size, iterations, key_size, key);
}

static const char *cipher_name(void *context) { return stock.cipher_name(of_stock(context)); }
static int get_key_size(void *context) { return stock.key_size(of_stock(context)); }
static int get_iv_size(void *context) { return stock.iv_size(of_stock(context)); }
static int get_block_size(void *context) { return stock.block_size(of_stock(context)); }
static int get_hmac_size(void *context, int algorithm) { return stock.hmac_size(of_stock(context), algorithm); }
static int fips_status(void *context) { return stock.fips_status(of_stock(context)); }
static const char *version(void *context) { return stock.version(of_stock(context)); }

// The code of a page, or another HMAC.
static int authenticate(
    void *context, int algorithm, const unsigned char *key, int key_size, const unsigned char *in, int in_size,
    const unsigned char *in2, int in2_size, unsigned char *out
) {
    struct sealeddb_page_contexts *contexts = in2 != NULL && in2_size == 4 ? contexts_of(context) : NULL;
    if (contexts != NULL
        && sealeddb_page_code(contexts, algorithm, key, key_size, in, in_size, in2, in2_size, out)) return 0;
    return stock.hmac(of_stock(context), algorithm, key, key_size, in, in_size, in2, in2_size, out);
}

// Connections whose codec gives out zeros by now. If the table is full, no connection is trusted any more.
enum { most_failed = 1024 };
static struct failed_connection {
    void *connection;
    unsigned int page;
    enum sealeddb_page_cause cause;
} failed[most_failed];
static pthread_mutex_t failed_lock = PTHREAD_MUTEX_INITIALIZER;
static int failures_stick, is_failed_full;
int sealeddb_failed_connections;

void sealeddb_let_failures_stick(void) { __atomic_store_n(&failures_stick, 1, __ATOMIC_RELEASE); }
int sealeddb_failures_stick(void) { return __atomic_load_n(&failures_stick, __ATOMIC_ACQUIRE); }

// A mutex of this kind has no error that could come, so the results do not matter.
static void lock_failed(void) { pthread_mutex_lock(&failed_lock); }

// The same is true here.
static void unlock_failed(void) { pthread_mutex_unlock(&failed_lock); }

// Under the lock.
static struct failed_connection *find_failed(const void *connection) {
    for (int i = 0; i < sealeddb_failed_connections; i++) {
        if (failed[i].connection == connection) return &failed[i];
    }
    return NULL;
}

static void remember_failure(unsigned int page, enum sealeddb_page_cause cause) {
    void *connection = sealeddb_page_failures.connection;
    if (connection == NULL || !sealeddb_failures_stick()) return;
    lock_failed();
    int count = sealeddb_failed_connections;
    if (find_failed(connection) == NULL) {
        if (count < most_failed) {
            failed[count] = (struct failed_connection){connection, page, cause};
            __atomic_store_n(&sealeddb_failed_connections, count + 1, __ATOMIC_RELEASE);
        } else {
            is_failed_full = 1;
        }
    }
    unlock_failed();
}

void sealeddb_forget_failures(void *connection) {
    if (__atomic_load_n(&sealeddb_failed_connections, __ATOMIC_ACQUIRE) == 0) return;
    lock_failed();
    struct failed_connection *found = find_failed(connection);
    if (found != NULL) {
        int last = sealeddb_failed_connections - 1;
        *found = failed[last];
        __atomic_store_n(&sealeddb_failed_connections, last, __ATOMIC_RELEASE);
    }
    unlock_failed();
}

int sealeddb_has_failed(void *connection) {
    lock_failed();
    int result = find_failed(connection) != NULL;
    unlock_failed();
    return result;
}

static void note(unsigned int page, enum sealeddb_page_cause cause) {
    sealeddb_page_failures.count++;
    sealeddb_page_failures.page = page;
    sealeddb_page_failures.cause = cause;
    remember_failure(page, cause);
}

void sealeddb_note_former_failure(void) {
    struct failed_connection former = {sealeddb_page_failures.connection, 0, sealeddb_page_is_damaged};
    if (former.connection == NULL) return;
    lock_failed();
    struct failed_connection *found = find_failed(former.connection);
    int is_failed = found != NULL || is_failed_full;
    if (found != NULL) former = *found;
    unlock_failed();
    if (!is_failed) return;
    sealeddb_page_failures.count++;
    sealeddb_page_failures.page = former.page;
    sealeddb_page_failures.cause = former.cause;
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
    int result = authenticate(context, algorithm, key, key_size, in, in_size, in2, in2_size, out);
    if (is_neutral || in2_size != 4 || is_written) return result;
    unsigned int page = in2[0] | in2[1] << 8 | in2[2] << 16 | (unsigned int)in2[3] << 24;
    if (result != 0) {
        note(page, sealeddb_page_not_decrypted);
        return result;
    }
    int size = stock.hmac_size(of_stock(context), algorithm);
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
    struct sealeddb_page_contexts *contexts = contexts_of(context);
    if (contexts != NULL && sealeddb_page_cipher(contexts, mode, key, key_size, iv, in, in_size, out)) return 0;
    int result = stock.cipher(of_stock(context), mode, key, key_size, iv, in, in_size, out);
    if (!is_neutral && result != 0 && mode == decrypting) note(0, sealeddb_page_not_decrypted);
    return result;
}

static int has_all_functions(const struct provider *provider) {
    return provider->name != NULL && provider->add_random != NULL && provider->random != NULL && provider->hmac != NULL
        && provider->kdf != NULL && provider->cipher != NULL && provider->cipher_name != NULL
        && provider->key_size != NULL && provider->iv_size != NULL && provider->block_size != NULL
        && provider->hmac_size != NULL && provider->context_init != NULL && provider->context_free != NULL
        && provider->fips_status != NULL && provider->version != NULL;
}

// Why contexts cannot be kept; NULL if they can.
static const char *problem_of_contexts(void *library) {
    if (!sealeddb_find_openssl(library, &openssl)) return "OpenSSL lacks a function";
    if (!sealeddb_page_contexts_agree(&openssl, stock.hmac, stock.cipher, 0))
        return "they did not return what SQLCipher's functions return";
    return NULL;
}

const char *sealeddb_install_provider(
    const char *object, sealeddb_zeros_are_stored zeros_are_stored, const char *reason_against_contexts
) {
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
    if (!has_all_functions(&copy) || strcmp(copy.name(NULL), "openssl") != 0)
        return "the engine's provider is not OpenSSL";
    stock = copy;
    are_zeros_stored = zeros_are_stored;
    contexts_problem = reason_against_contexts != NULL ? reason_against_contexts : problem_of_contexts(library);
    copy.hmac = hmac;
    copy.cipher = cipher;
    if (contexts_problem == NULL) {
        copy.name = name;
        copy.add_random = add_random;
        copy.random = get_random;
        copy.kdf = kdf;
        copy.cipher_name = cipher_name;
        copy.key_size = get_key_size;
        copy.iv_size = get_iv_size;
        copy.block_size = get_block_size;
        copy.hmac_size = get_hmac_size;
        copy.context_init = context_init;
        copy.context_free = context_free;
        copy.fips_status = fips_status;
        copy.version = version;
    }
    // SQLCipher takes ownership of the provider and frees it with its own allocator.
    struct provider *ours = allocate(sizeof *ours);
    const char *failure = ours == NULL ? "no memory" : NULL;
    if (ours != NULL) {
        memcpy(ours, &copy, sizeof copy);
        if (put(ours) != 0) failure = "the engine did not take the provider";
    }
    if (failure != NULL) sealeddb_stop_keeping_contexts(failure);
    return failure;
}

void sealeddb_neutralize_provider(void) {
    is_neutral = 1;
    sealeddb_stop_keeping_contexts("the functions in front of SQLCipher's are not in use");
}

const char *sealeddb_contexts_problem(void) { return contexts_problem; }

void sealeddb_stop_keeping_contexts(const char *reason) {
    const char *none = NULL;
    // The first reason stays.
    atomic_compare_exchange_strong(&contexts_problem, &none, reason);
}

int sealeddb_check_contexts(void) {
    return contexts_problem == NULL && sealeddb_page_contexts_agree(&openssl, stock.hmac, stock.cipher, 1);
}
