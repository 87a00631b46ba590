import CBaseline
import Foundation

/// A connection of the C baseline.
final class Baseline {
    let pointer: OpaquePointer

    init(_ path: String, _ options: StoreOptions = StoreOptions()) throws {
        var result: OpaquePointer?
        let code = options.withCOptions { baseline_open(path, $0, &result) }
        guard code == 0, let result else {
            defer { baseline_close(result) }
            throw Failure("C: cannot open \(path): \(code), \(String(cString: baseline_message(result)))")
        }
        pointer = result
    }

    deinit { baseline_close(pointer) }

    /// Throws unless the code is SQLITE_OK.
    func check(_ code: Int32) throws {
        guard code == 0 else { throw Failure("C: \(code), \(String(cString: baseline_message(pointer)))") }
    }

    /// Throws if the count is the negative of a code.
    @discardableResult
    func checkCount(_ count: Int32) throws -> Int {
        guard count >= 0 else { throw Failure("C: \(-count), \(String(cString: baseline_message(pointer)))") }
        return Int(count)
    }

    func execute(_ sql: String) throws { try check(baseline_execute(pointer, sql)) }

    func integer(_ sql: String) -> Int64 { baseline_integer(pointer, sql) }

    func insert(_ sql: String, _ kinds: [baseline_kind], rows: Int) throws {
        try check(baseline_insert(pointer, sql, kinds, Int32(kinds.count), Int32(rows), CValues.shared.pointer))
    }

    /// Inserts rows of one text.
    func insertTexts(_ sql: String, _ texts: CTexts) throws {
        try check(
            baseline_insert_texts(pointer, sql, texts.pointers, texts.lengths, Int32(texts.lengths.count), 1)
        )
    }

    func insertPackages(_ packages: PackageIndex) throws {
        try check(
            baseline_insert_texts(
                pointer,
                PackageIndex.insert,
                packages.pointers,
                packages.lengths,
                Int32(packages.count),
                Int32(PackageIndex.columns.count)
            )
        )
    }
}

/// Texts as C has them.
final class CTexts {
    let pointers: [UnsafePointer<CChar>?]
    let lengths: [Int32]

    init(_ texts: [String]) {
        pointers = texts.map { text in strdup(text).map { UnsafePointer($0) } }
        lengths = texts.map { Int32($0.utf8.count) }
    }

    deinit {
        for pointer in pointers { free(UnsafeMutablePointer(mutating: pointer)) }
    }
}

extension StoreOptions {
    /// Without what concerns connections alone.
    var forFile: StoreOptions {
        StoreOptions(secret: secret, pageSize: pageSize, hmac: hmac, omitsHMAC: omitsHMAC, locksMemory: locksMemory)
    }

    func withCOptions<T>(_ body: (baseline_options) -> T) -> T {
        withOptionalCString(keyText) { key in
            withOptionalCString(hmac) { hmac in
                journalMode.withCString { journalMode in
                    synchronous.withCString { synchronous in
                        body(
                            baseline_options(
                                key: key,
                                page_size: Int32(pageSize),
                                hmac: hmac,
                                no_hmac: omitsHMAC,
                                memory_security: locksMemory,
                                journal_mode: journalMode,
                                synchronous: synchronous,
                                cache_size: Int32(cacheSize)
                            )
                        )
                    }
                }
            }
        }
    }

    private func withOptionalCString<T>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> T) -> T {
        guard let text else { return body(nil) }
        return text.withCString { body($0) }
    }
}

/// ``Values`` as C has them; never freed.
final class CValues: Sendable {
    static let shared = CValues()

    // Written once, in `init`.
    nonisolated(unsafe) let pointer: UnsafePointer<baseline_values>

    private init() {
        func kept<T>(_ values: [T]) -> UnsafePointer<T> {
            let pointer = UnsafeMutablePointer<T>.allocate(capacity: values.count)
            pointer.initialize(from: values, count: values.count)
            return UnsafePointer(pointer)
        }
        func bytes(_ data: Data) -> UnsafePointer<CChar>? { kept(data.map { CChar(bitPattern: $0) } + [0]) }
        let values = Values.shared
        pointer = kept([
            baseline_values(
                count: Int32(Values.count),
                integers: kept(values.integers),
                reals: kept(values.reals),
                texts: kept(values.texts.map { bytes(Data($0.utf8)) }),
                text_lengths: kept(values.texts.map { Int32($0.utf8.count) }),
                blobs: kept(values.blobs.map(bytes)),
                blob_length: 32
            )
        ])
    }
}
