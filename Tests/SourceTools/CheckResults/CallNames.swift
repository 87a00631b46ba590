/// Which calls have a result that counts.
enum CallNames {
    private static let prefixes = [
        "sqlite3_", "sealeddb_", "EVP_", "HMAC", "PKCS5_", "RAND_", "OSSL_", "CRYPTO_", "PQ", "curl_",
    ]

    /// They return nothing, or nothing that tells of a failure: what was set before, for most.
    private static let withoutResult: Set<String> = [
        "sqlite3_commit_hook", "sqlite3_free", "sqlite3_interrupt", "sqlite3_progress_handler", "sqlite3_randomness",
        "sqlite3_rollback_hook", "sqlite3_set_last_insert_rowid", "sqlite3_update_hook", "sqlite3_wal_hook",
        "sqlite3_result_text64", "sqlite3_result_blob64",
        "sealeddb_hash_free", "sealeddb_note_read", "sealeddb_page_keys_free",
        "sealeddb_page_marker_free", "sealeddb_forget_failures", "sealeddb_let_failures_stick",
        "__atomic_store_n",
        "curl_easy_cleanup", "curl_easy_reset", "curl_slist_free_all",
        "sealeddb_result_blob", "sealeddb_result_text",
        "sealeddb_editline_end", "sealeddb_editline_remember", "sealeddb_editline_replace", "sealeddb_secret_free",
        "sealeddb_unlock_and_close", "sealeddb_wipe", "sealeddb_free_page_contexts", "sealeddb_stop_keeping_contexts",
        "sealeddb_neutralize_provider",
        "EVP_CIPHER_CTX_free", "EVP_MD_CTX_free", "EVP_MAC_CTX_free", "EVP_MAC_free", "EVP_MD_free", "EVP_CIPHER_free",
        "EVP_KDF_CTX_free", "EVP_KDF_free",
        "PQclear", "PQconninfoFree", "PQfinish", "PQfreeCancel", "PQfreemem",
    ]
    private static let prefixesWithoutResult = ["sqlite3_result_"]

    /// In C every call that stands alone counts, but for these.
    private static let withoutResultInC: Set<String> = [
        "explicit_bzero", "free", "free_context", "memcpy", "memset", "memmove", "strncpy", "exit", "_exit", "abort",
        "OPENSSL_cleanse", "OPENSSL_free", "__sync_synchronize",
    ]

    private static let system: Set<String> = [
        "access", "chdir", "chmod", "chown", "clock_gettime", "close", "closedir", "copy_file_range", "creat", "dup",
        "dup2", "dup3", "execv", "execve", "execvp", "faccessat", "fallocate", "fchdir", "fchmod", "fchmodat", "fchown",
        "fchownat", "fclose", "fcntl", "fdatasync", "fflush", "fgetxattr", "flock", "fork", "fputs", "fread",
        "fremovexattr",
        "fsetxattr", "fstat", "fstatat", "fstatvfs", "fsync", "ftruncate", "fwrite", "getrandom", "getrlimit",
        "getxattr", "ioctl", "kill",
        "killpg", "lchown", "link", "linkat", "listxattr", "lockf", "lseek", "lstat", "madvise", "mkdir", "mkdirat",
        "mkdtemp", "mkfifo", "mkostemp", "mkstemp", "mlock", "mlockall", "mmap", "mprotect", "msync", "munlock",
        "munmap",
        "nanosleep", "open", "openat", "opendir", "pipe", "pipe2", "poll", "posix_fadvise", "posix_fallocate", "ppoll",
        "prctl", "pread", "preadv", "pwrite", "pwritev", "raise", "read", "readdir", "readlink", "readv", "realpath",
        "remove", "rename", "renameat", "renameat2", "rmdir", "select", "sendfile", "setenv", "setgid", "setpgid",
        "setrlimit", "setsid", "setuid", "setxattr", "shm_open", "sigaction", "sigemptyset", "sigfillset", "signal",
        "sigprocmask", "sigtimedwait", "sigwait", "sigwaitinfo", "socket", "stat", "statvfs", "statx", "symlink",
        "symlinkat",
        "sync_file_range", "syncfs", "sysconf", "tcgetattr", "tcsetattr", "truncate", "unlink", "unlinkat", "unsetenv",
        "usleep", "utimensat", "wait", "waitid", "waitpid", "write", "writev",
    ]
    private static let systemPrefixes = ["pthread_", "posix_spawn", "sem_", "timer_"]

    static func hasResult(inSwift name: String) -> Bool {
        if system.contains(name) || systemPrefixes.contains(where: name.hasPrefix) { return true }
        return prefixes.contains(where: name.hasPrefix) && hasResult(name)
    }

    static func hasResult(inC name: String) -> Bool {
        !withoutResultInC.contains(name) && hasResult(name)
    }

    private static func hasResult(_ name: String) -> Bool {
        !withoutResult.contains(name) && !prefixesWithoutResult.contains(where: name.hasPrefix)
    }
}
