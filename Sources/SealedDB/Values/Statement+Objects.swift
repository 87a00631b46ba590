import Foundation

extension Statement {
    /// Returns the value as FMDB's `object`: an `NSNumber`, `String`, `Data` or `NSNull`; `nil` if there is no row or
    /// no such column.
    ///
    /// Numbers are `NSNumber`, because on Linux only `NSNumber` can be cast to every number type of Swift.
    func object(at index: Int32) -> Any? {
        guard hasRow, index >= 0, index < columnCount else { return nil }
        switch type(at: index) {
        case .integer: return NSNumber(value: int64(at: index))
        case .float: return NSNumber(value: double(at: index))
        case .text: return text(at: index) ?? NSNull()
        case .blob: return data(at: index) ?? NSNull()
        case .null: return NSNull()
        }
    }

    func data(at index: Int32) -> Data? {
        guard hasColumn(index) else { return nil }
        return storedData(at: index) ?? withBytes(at: index) { Data($0) }
    }
}
