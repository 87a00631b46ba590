import Foundation
import Testing

/// The sweeps fail those calls that `FailingCalls` knows. A new one must not escape them unnoticed.
@Suite(.hangLimit)
struct CallListTests {
    /// Calls that cannot fail here, or whose failure is made elsewhere.
    private static let others: [String: Set<String>] = [
        "they cannot fail, or return what is no failure": [
            "__sched_cpucount",
            "__errno_location", "__stack_chk_fail", "__tls_get_addr", "abort", "ceil", "clock_gettime", "dladdr",
            "floor",
            "getenv", "geteuid", "getpid", "isxdigit", "memchr", "memcmp", "memcpy", "memmove", "memset", "rint",
            "round",
            "sched_yield", "strcasecmp", "strcmp", "strcspn", "strerror", "strlen", "strncmp", "strncpy", "strstr",
            "trunc", "usleep",
            "wcwidth", "bcmp",
            "explicit_bzero",
            "malloc_usable_size", "arc4random_buf", "fmod", "pow", "isatty", "__isoc99_sscanf",
            "snprintf", "time", "gmtime_r",
        ],
        "they give something back, and their results are dropped with a reason": ["closedir", "free", "munmap"],
        "their failure is that of memory: the fault harness fails each allocation": [
            "_Block_copy", "_Block_release", "_NSConcreteStackBlock", "calloc", "malloc", "realloc", "strdup",
            "posix_memalign",
        ],
        "the objects of this process, which do not change": ["dlopen", "dlsym"],
        "signals: they fail for a number that does not exist": [
            "kill", "raise", "sigaction", "sigaddset", "sigemptyset", "sigfillset", "signal", "pthread_sigmask",
            "sigdelset",
        ],
        "the terminal: TerminalTests": ["ioctl", "tcgetattr", "tcsetattr"],
        "limits of the process: they fail for one that does not exist": ["getrlimit", "prctl", "setrlimit", "sysconf"],
        "it fails on more than 1024 processors, and another call then counts them": ["sched_getaffinity"],
        "a command's start: they fail for want of memory": [
            "posix_spawn_file_actions_addclosefrom_np", "posix_spawn_file_actions_adddup2",
            "posix_spawn_file_actions_addopen", "posix_spawn_file_actions_destroy", "posix_spawn_file_actions_init",
            "posix_spawnattr_destroy", "posix_spawnattr_init", "posix_spawnattr_setflags", "posix_spawnattr_setpgroup",
            "posix_spawnattr_setsigdefault", "posix_spawnattr_setsigmask",
        ],
        "waitpid does the same work, and fails in the sweeps": ["waitid"],
        "it fails while another thread has the lock, and then a page for secrets is not kept": [
            "pthread_mutex_trylock"
        ],
        "libcurl, whose failures the server of the tests of object stores makes": [
            "curl_easy_cleanup", "curl_easy_getinfo", "curl_easy_init", "curl_easy_perform", "curl_easy_reset",
            "curl_easy_setopt", "curl_easy_strerror", "curl_getdate", "curl_global_init", "curl_slist_append",
            "curl_slist_free_all",
        ],
        "it fails for texts that are no address": ["inet_pton"],
        "the name of the machine, which fits": ["gethostname"],
        "it fails for years that the text of a time cannot have": ["timegm"],
        "PagePipelineTests give it no threads": ["pthread_create"],
        "threads: they fail for misuse only": [
            "pthread_join",
            "pthread_atfork", "pthread_mutex_destroy", "pthread_mutex_init", "pthread_mutex_lock",
            "pthread_mutex_unlock", "pthread_once", "pthread_self", "syscall",
        ],
    ]

    /// What the compiler, the runtime and the engine bring along.
    private static let prefixes = [
        "$s", "swift_", "_swift", "__swift", "sqlite3_", "sealeddb_", "EVP_", "OPENSSL_", "OSSL_", "PKCS5_", "RAND_",
        "HMAC",
        "CRYPTO_",
        "OBJC_",
        "__asan_", "__tsan_", "__sanitizer_", "__lsan_", "__ubsan_", "_Tt", "symbolic ",
        // The linker's names of the bounds of a section.
        "__start_", "__stop_",
    ]

    private func symbols(_ options: [String], _ objects: [String]) throws -> Set<String> {
        let nm = Process()
        nm.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        nm.arguments = ["nm", "--format=posix"] + options + objects
        let output = Pipe()
        nm.standardOutput = output
        try nm.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        nm.waitUntilExit()
        try #require(nm.terminationStatus == 0)
        // Each object's name stands above its symbols.
        return Set(text.split(separator: "\n").filter { !$0.hasSuffix(":") }.map { String($0.prefix { $0 != " " }) })
    }

    private func objects(of target: String) throws -> [String] {
        let products = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folder = URL(fileURLWithPath: products).deletingLastPathComponent().appending(path: "\(target).build")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        return names.filter { $0.hasSuffix(".o") }.map { folder.path + "/" + $0 }
    }

    @Test func eachCallOfTheLibraryCanBeMadeToFail() throws {
        let own = try objects(of: "CSealedDBSystem") + objects(of: "SealedDB")
        try #require(own.count > 100)
        let used = try symbols(["--undefined-only"], own)
        try #require(used.isSuperset(of: ["open", "fsync", "statx", "renameat2"]))
        let failing = try symbols(["--defined-only"], objects(of: "FailingCalls"))
        let known = Self.others.values.reduce(failing) { $0.union($1) }
        let unknown = used.subtracting(known).filter { name in !Self.prefixes.contains { name.hasPrefix($0) } }
        #expect(unknown.isEmpty, "Let FailingCalls make them fail, or say here why not: \(unknown.sorted())")
    }
}
