import Foundation
internal import SQLiteEngine

/// The implementation of a function: its context, the number of its arguments, and the arguments.
public typealias FunctionBlock = (
    _ context: UnsafeMutableRawPointer, _ argc: Int32, _ argv: UnsafeMutablePointer<UnsafeMutableRawPointer>
) -> Void

/// A function that SQL may call.
struct SQLFunction {
    let name: String
    let argumentCount: Int32
    let block: FunctionBlock

    /// SQLite owns it until the connection closes or the function is replaced.
    private final class Box {
        let block: FunctionBlock
        init(_ block: @escaping FunctionBlock) { self.block = block }
    }

    /// https://www.sqlite.org/c3ref/create_function.html
    func register(on connection: Connection) throws(DatabaseError) {
        let box = Unmanaged.passRetained(Box(block)).toOpaque()
        // SQLite releases the box itself if this fails.
        let code = sqlite3_create_function_v2(
            connection.handle,
            name,
            argumentCount,
            SQLITE_UTF8,
            box,
            { context, count, arguments in
                guard let context, let data = sqlite3_user_data(context) else { return }
                let box = Unmanaged<Box>.fromOpaque(data).takeUnretainedValue()
                // Without arguments SQLite passes no array.
                withUnsafeTemporaryAllocation(of: UnsafeMutableRawPointer.self, capacity: Int(max(count, 1))) { argv in
                    argv.baseAddress!.initialize(to: UnsafeMutableRawPointer(context))
                    for index in 0..<Int(count) {
                        (argv.baseAddress! + index).initialize(to: UnsafeMutableRawPointer(arguments![index]!))
                    }
                    box.block(UnsafeMutableRawPointer(context), count, argv.baseAddress!)
                }
            },
            nil,
            nil,
            { $0.map { Unmanaged<Box>.fromOpaque($0).release() } }
        )
        try connection.check(code)
    }
}

/// An argument of a function. https://www.sqlite.org/c3ref/value_blob.html
struct FunctionArgument {
    private let value: OpaquePointer

    init(_ pointer: UnsafeMutableRawPointer) { value = OpaquePointer(pointer) }

    var type: SqliteValueType { SqliteValueType(rawValue: sqlite3_value_type(value)) ?? .null }
    var int32: Int32 { sqlite3_value_int(value) }
    var int64: Int64 { sqlite3_value_int64(value) }
    var double: Double { sqlite3_value_double(value) }

    var data: Data? {
        guard type != .null else { return nil }
        guard let start = sqlite3_value_blob(value) else { return Data() }
        return Data(bytes: start, count: Int(sqlite3_value_bytes(value)))
    }

    var text: String? {
        guard let start = sqlite3_value_text(value) else { return nil }
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
        return String(validating: bytes, as: UTF8.self)
    }
}

/// Where a function leaves its result. https://www.sqlite.org/c3ref/result_blob.html
struct FunctionContext {
    private let context: OpaquePointer

    init(_ pointer: UnsafeMutableRawPointer) { context = OpaquePointer(pointer) }

    func setNull() { sqlite3_result_null(context) }
    func set(_ value: Int32) { sqlite3_result_int(context, value) }
    func set(_ value: Int64) { sqlite3_result_int64(context, value) }
    func set(_ value: Double) { sqlite3_result_double(context, value) }

    func set(_ data: Data) {
        data.withUnsafeBytes { sealeddb_result_blob(context, $0.baseAddress, UInt64($0.count)) }
    }

    func set(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            let start = bytes.baseAddress.map { UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self) }
            sealeddb_result_text(context, start, UInt64(bytes.count))
        }
    }

    func fail(_ message: String) { sqlite3_result_error(context, message, -1) }
    func fail(code: Int32) { sqlite3_result_error_code(context, code) }
    func failNoMemory() { sqlite3_result_error_nomem(context) }
    func failTooBig() { sqlite3_result_error_toobig(context) }
}
