public import Foundation

/// FMDB's form of functions, which works on SQLite's own arguments. https://www.sqlite.org/appfunc.html
extension Database {
    /// Makes a function that SQL may call; it comes back when the database is opened again.
    ///
    /// The block reads its arguments with `valueString(_:)` and the like, and sets its result with
    /// `resultString(_:context:)` and the like; setting none means NULL. As in FMDB the database's schema may call it too;
    /// ``addFunction(_:argumentCount:options:_:)`` is safer, and its block throws. A failure is left in ``lastError()``.
    ///
    /// The database keeps the block, so a block that uses the database keeps it alive for ever, as in FMDB: write
    /// `[unowned db]` before its parameters, or call ``removeFunction(_:argumentCount:)``.
    /// - Parameter arguments: how many it takes; -1 for any number.
    public func makeFunctionNamed(_ name: String, arguments: Int32, block: @escaping FunctionBlock) {
        _ = succeeds { () throws(DatabaseError) in
            let function = SQLFunction(name: name, argumentCount: arguments, body: .block(block))
            try additions.add(function, to: openConnection())
        }
    }

    /// As ``makeFunctionNamed(_:arguments:block:)``: the number is exact, whatever the label says.
    @available(*, deprecated, renamed: "makeFunctionNamed(_:arguments:block:)")
    public func makeFunctionNamed(_ name: String, maximumArguments count: Int32, with block: @escaping FunctionBlock) {
        makeFunctionNamed(name, arguments: count, block: block)
    }

    // MARK: Arguments

    public func valueType(_ argv: UnsafeMutableRawPointer) -> SqliteValueType { FunctionArgument(argv).type }
    public func valueInt(_ value: UnsafeMutableRawPointer) -> Int32 { FunctionArgument(value).int32 }
    public func valueLong(_ value: UnsafeMutableRawPointer) -> Int64 { FunctionArgument(value).int64 }
    public func valueDouble(_ value: UnsafeMutableRawPointer) -> Double { FunctionArgument(value).double }

    /// A copy of the bytes; `nil` for NULL.
    public func valueData(_ value: UnsafeMutableRawPointer) -> Data? { FunctionArgument(value).data }

    /// Text with its embedded NULs; `nil` for NULL and for invalid UTF-8.
    public func valueString(_ value: UnsafeMutableRawPointer) -> String? { FunctionArgument(value).text }

    // MARK: Results

    public func resultNull(context: UnsafeMutableRawPointer) { FunctionContext(context).setNull() }

    public func resultInt(_ value: Int32, context: UnsafeMutableRawPointer) { FunctionContext(context).set(value) }

    public func resultLong(_ value: Int64, context: UnsafeMutableRawPointer) { FunctionContext(context).set(value) }

    public func resultDouble(_ value: Double, context: UnsafeMutableRawPointer) { FunctionContext(context).set(value) }

    public func resultData(_ data: Data, context: UnsafeMutableRawPointer) { FunctionContext(context).set(data) }

    public func resultString(_ value: String, context: UnsafeMutableRawPointer) { FunctionContext(context).set(value) }

    /// Fails the statement with this message.
    public func resultError(_ error: String, context: UnsafeMutableRawPointer) { FunctionContext(context).fail(error) }

    /// Sets the code with which the statement fails; a message that was set stays.
    public func resultErrorCode(_ errorCode: Int32, context: UnsafeMutableRawPointer) {
        FunctionContext(context).fail(code: errorCode)
    }

    public func resultErrorNoMemory(context: UnsafeMutableRawPointer) { FunctionContext(context).failNoMemory() }

    public func resultErrorTooBig(context: UnsafeMutableRawPointer) { FunctionContext(context).failTooBig() }
}
