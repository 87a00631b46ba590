public import Foundation

/// FMDB's form of functions, whose blocks work on SQLite's own arguments. https://www.sqlite.org/appfunc.html
extension Database {
    /// Adds a function that SQL may call. It is added again whenever the database is reopened.
    ///
    /// The block reads its arguments with `valueString(_:)` and similar calls, and sets its result with
    /// `resultString(_:context:)` and similar calls. Without a result, the function returns NULL. As in FMDB, the
    /// schema of the database may call the function too. ``addFunction(_:argumentCount:options:_:)`` is safer, and its
    /// block may throw. A failure can be read from ``lastError()``.
    ///
    /// The database retains the block. As in FMDB, a block that uses the database therefore keeps it alive for ever:
    /// write `[unowned db]` before the parameters of the block, or call ``removeFunction(_:argumentCount:)``.
    /// - Parameters:
    ///   - name: the name by which SQL calls it.
    ///   - arguments: the number of arguments; -1 for any number.
    ///   - block: gets SQLite's context, the number of arguments, and the arguments.
    public func makeFunctionNamed(_ name: String, arguments: Int32, block: @escaping FunctionBlock) {
        _ = succeeds { () throws(DatabaseError) in
            let function = SQLFunction(name: name, argumentCount: arguments, body: .block(block))
            try additions.add(function, to: openConnection())
        }
    }

    /// The same as ``makeFunctionNamed(_:arguments:block:)``: the number is exact, despite its label.
    @available(*, deprecated, renamed: "makeFunctionNamed(_:arguments:block:)")
    public func makeFunctionNamed(_ name: String, maximumArguments count: Int32, with block: @escaping FunctionBlock) {
        makeFunctionNamed(name, arguments: count, block: block)
    }

    // MARK: Arguments

    /// Returns the type of an argument.
    public func valueType(_ argv: UnsafeMutableRawPointer) -> SqliteValueType { FunctionArgument(argv).type }
    /// Returns the low 32 bits of an argument as an integer.
    public func valueInt(_ value: UnsafeMutableRawPointer) -> Int32 { FunctionArgument(value).int32 }
    /// Returns an argument as an integer; other values are converted as SQLite's `CAST` does.
    public func valueLong(_ value: UnsafeMutableRawPointer) -> Int64 { FunctionArgument(value).int64 }
    /// Returns an argument as a number; other values are converted as SQLite's `CAST` does.
    public func valueDouble(_ value: UnsafeMutableRawPointer) -> Double { FunctionArgument(value).double }

    /// Returns a copy of the bytes; `nil` for NULL.
    public func valueData(_ value: UnsafeMutableRawPointer) -> Data? { FunctionArgument(value).data }

    /// Returns text, including NUL characters; `nil` for NULL and for invalid UTF-8.
    public func valueString(_ value: UnsafeMutableRawPointer) -> String? { FunctionArgument(value).text }

    // MARK: Results

    /// Returns NULL from the function.
    public func resultNull(context: UnsafeMutableRawPointer) { FunctionContext(context).setNull() }

    /// Returns an integer from the function.
    public func resultInt(_ value: Int32, context: UnsafeMutableRawPointer) { FunctionContext(context).set(value) }

    /// Returns an integer from the function.
    public func resultLong(_ value: Int64, context: UnsafeMutableRawPointer) { FunctionContext(context).set(value) }

    /// Returns a number from the function. SQLite makes NULL of NaN.
    public func resultDouble(_ value: Double, context: UnsafeMutableRawPointer) { FunctionContext(context).set(value) }

    /// Returns a copy of the bytes from the function, as a blob.
    public func resultData(_ data: Data, context: UnsafeMutableRawPointer) { FunctionContext(context).set(data) }

    /// Returns text from the function.
    public func resultString(_ value: String, context: UnsafeMutableRawPointer) { FunctionContext(context).set(value) }

    /// Fails the statement with this message.
    public func resultError(_ error: String, context: UnsafeMutableRawPointer) { FunctionContext(context).fail(error) }

    /// Sets the code with which the statement fails. A message that was set before stays.
    public func resultErrorCode(_ errorCode: Int32, context: UnsafeMutableRawPointer) {
        FunctionContext(context).fail(code: errorCode)
    }

    /// Fails the statement with `SQLITE_NOMEM`.
    public func resultErrorNoMemory(context: UnsafeMutableRawPointer) { FunctionContext(context).failNoMemory() }

    /// Fails the statement with `SQLITE_TOOBIG`.
    public func resultErrorTooBig(context: UnsafeMutableRawPointer) { FunctionContext(context).failTooBig() }
}
