import Foundation

extension Statement {
    /// The value as FMDB's `object`: `NSNumber`, `String`, `Data` or `NSNull`; `nil` without a row or column.
    ///
    /// Numbers are `NSNumber`, because on Linux only that casts to every Swift number.
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
