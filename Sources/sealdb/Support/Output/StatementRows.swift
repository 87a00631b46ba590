import SealedDB

extension ResultSet {
    /// Runs the statement to its end, and writes its rows, if there are any.
    ///
    /// A statement that writes is run to its end whatever becomes of its rows. With the first of them all its work is
    /// done, and to close it then would store that, behind an error that says something else.
    /// - Parameters:
    ///   - check: is asked before each row of a statement that reads, and may throw.
    ///   - remark: is added to the error if the rows of a statement that writes cannot be written.
    func writeAll(
        check: () throws -> Void = {},
        remark: () -> String = { "" },
        _ makeWriter: () -> any ResultWriter
    ) throws {
        var writer: (any ResultWriter)?
        var failure: (any Error)?
        func attempt(_ body: () throws -> Void) throws {
            guard failure == nil else { return }
            do {
                try body()
            } catch {
                if isReadOnlyStatement { throw error }
                failure = error
            }
        }
        while try nextWithError() {
            try attempt {
                if isReadOnlyStatement { try check() }
                if writer == nil {
                    writer = makeWriter()
                    try writer?.begin(columns: self)
                }
                try writer?.write(row: self)
            }
        }
        try attempt { try writer?.end() }
        guard let failure else { return }
        let (status, message) = ErrorReport.statusAndMessage(of: failure)
        throw Failure(ExitStatus(rawValue: status) ?? .data, message + remark())
    }
}
