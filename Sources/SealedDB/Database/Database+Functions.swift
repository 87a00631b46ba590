public import Foundation
internal import SQLiteEngine

/// The implementation of a function: its context, the number of its arguments, and the arguments.
public typealias FunctionBlock = (
    _ context: UnsafeMutableRawPointer, _ argc: Int32, _ argv: UnsafeMutablePointer<UnsafeMutableRawPointer>
) -> Void

/// A function that is registered with every connection of a database.
struct FunctionDefinition {
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

extension Database {
    /// Makes a function that SQL may call; it comes back when the database is opened again.
    ///
    /// The block reads its arguments with `valueString(_:)` and the like, and sets its result with
    /// `resultString(_:context:)` and the like; setting none means NULL. A failure is left in ``lastError()``.
    /// - Parameter arguments: how many it takes; -1 for any number.
    public func makeFunctionNamed(_ name: String, arguments: Int32, block: @escaping FunctionBlock) {
        let function = FunctionDefinition(name: name, argumentCount: arguments, block: block)
        _ = succeeds { () throws(DatabaseError) in
            try function.register(on: openConnection())
            functions.removeAll { $0.name.lowercased() == name.lowercased() && $0.argumentCount == arguments }
            functions.append(function)
        }
    }

    // MARK: Arguments. https://www.sqlite.org/c3ref/value_blob.html

    public func valueType(_ argv: UnsafeMutableRawPointer) -> SqliteValueType {
        SqliteValueType(rawValue: sqlite3_value_type(OpaquePointer(argv))) ?? .null
    }

    public func valueInt(_ value: UnsafeMutableRawPointer) -> Int32 { sqlite3_value_int(OpaquePointer(value)) }

    public func valueLong(_ value: UnsafeMutableRawPointer) -> Int64 { sqlite3_value_int64(OpaquePointer(value)) }

    public func valueDouble(_ value: UnsafeMutableRawPointer) -> Double { sqlite3_value_double(OpaquePointer(value)) }

    /// A copy of the bytes; `nil` for NULL.
    public func valueData(_ value: UnsafeMutableRawPointer) -> Data? {
        let pointer = OpaquePointer(value)
        guard sqlite3_value_type(pointer) != SqliteValueType.null.rawValue else { return nil }
        guard let start = sqlite3_value_blob(pointer) else { return Data() }
        return Data(bytes: start, count: Int(sqlite3_value_bytes(pointer)))
    }

    /// Text with its embedded NULs; `nil` for NULL and for invalid UTF-8.
    public func valueString(_ value: UnsafeMutableRawPointer) -> String? {
        let pointer = OpaquePointer(value)
        guard let start = sqlite3_value_text(pointer) else { return nil }
        let bytes = UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(pointer)))
        return String(validating: bytes, as: UTF8.self)
    }

    // MARK: Results. https://www.sqlite.org/c3ref/result_blob.html

    public func resultNull(context: UnsafeMutableRawPointer) { sqlite3_result_null(OpaquePointer(context)) }

    public func resultInt(_ value: Int32, context: UnsafeMutableRawPointer) {
        sqlite3_result_int(OpaquePointer(context), value)
    }

    public func resultLong(_ value: Int64, context: UnsafeMutableRawPointer) {
        sqlite3_result_int64(OpaquePointer(context), value)
    }

    public func resultDouble(_ value: Double, context: UnsafeMutableRawPointer) {
        sqlite3_result_double(OpaquePointer(context), value)
    }

    public func resultData(_ data: Data, context: UnsafeMutableRawPointer) {
        data.withUnsafeBytes { sealeddb_result_blob(OpaquePointer(context), $0.baseAddress, UInt64($0.count)) }
    }

    public func resultString(_ value: String, context: UnsafeMutableRawPointer) {
        var value = value
        value.withUTF8 { bytes in
            let start = bytes.baseAddress.map { UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self) }
            sealeddb_result_text(OpaquePointer(context), start, UInt64(bytes.count))
        }
    }

    /// Fails the statement with this message.
    public func resultError(_ error: String, context: UnsafeMutableRawPointer) {
        sqlite3_result_error(OpaquePointer(context), error, -1)
    }

    /// Sets the code with which the statement fails; a message that was set stays.
    public func resultErrorCode(_ errorCode: Int32, context: UnsafeMutableRawPointer) {
        sqlite3_result_error_code(OpaquePointer(context), errorCode)
    }

    public func resultErrorNoMemory(context: UnsafeMutableRawPointer) {
        sqlite3_result_error_nomem(OpaquePointer(context))
    }

    public func resultErrorTooBig(context: UnsafeMutableRawPointer) {
        sqlite3_result_error_toobig(OpaquePointer(context))
    }
}
