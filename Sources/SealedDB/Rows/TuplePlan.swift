internal import Foundation
internal import SQLiteEngine

/// The layout of a tuple that consists only of the usual types. Its rows are read here and stored directly in the
/// tuple's memory, without a call through a protocol witness for each column.
@usableFromInline
struct TuplePlan {
    private enum Kind: UInt64 {
        // Each of these is aligned to 8 bytes, and occupies 8 or 16 bytes.
        case int64 = 1
        case double, string, data
        case optionalInt64, optionalDouble, optionalString, optionalData

        init?(_ type: Any.Type) {
            switch ObjectIdentifier(type) {
            case ObjectIdentifier(Int64.self), ObjectIdentifier(Int.self): self = .int64
            case ObjectIdentifier(Double.self): self = .double
            case ObjectIdentifier(String.self): self = .string
            case ObjectIdentifier(Data.self): self = .data
            case ObjectIdentifier(Int64?.self), ObjectIdentifier(Int?.self): self = .optionalInt64
            case ObjectIdentifier(Double?.self): self = .optionalDouble
            case ObjectIdentifier(String?.self): self = .optionalString
            case ObjectIdentifier(Data?.self): self = .optionalData
            default: return nil
            }
        }

        var stride: Int { self == .int64 || self == .double ? 8 : 16 }
    }

    /// Four bits for each element, the first element in the lowest bits; 0 if the tuple contains another type.
    private var kinds: UInt64 = 0
    private var count = 0
    /// The size in bytes of one such tuple, including padding.
    private var stride = 0
    private var isUsual = true

    @usableFromInline
    init() {}

    @usableFromInline
    mutating func add(_ type: Any.Type) {
        guard isUsual, count < 16, let kind = Kind(type) else {
            (kinds, isUsual) = (0, false)
            return
        }
        kinds |= kind.rawValue << UInt64(4 * count)
        count += 1
        stride += kind.stride
    }

    /// Reads the current row. Returns false, with nothing in the memory, if a value has another type or there are too
    /// few columns. Also returns false if the size of the memory differs from this layout, should the size of a type
    /// ever change.
    @usableFromInline
    func read(_ statement: Statement, into place: UnsafeMutableRawBufferPointer) -> Bool {
        guard isUsual, place.count == stride, let start = place.baseAddress,
            statement.hasColumn(Int32(truncatingIfNeeded: count - 1))
        else { return false }
        var rest = kinds
        var place = start
        var index: Int32 = 0
        while let kind = Kind(rawValue: rest & 15) {
            guard read(kind, statement, index, into: place) else {
                destroy(index, from: start)
                return false
            }
            rest >>= 4
            place += kind.stride
            index += 1
        }
        return true
    }

    @inline(__always)
    private func read(
        _ kind: Kind,
        _ statement: Statement,
        _ index: Int32,
        into place: UnsafeMutableRawPointer
    ) -> Bool {
        switch kind {
        case .int64:
            guard let value = statement.storedInteger(at: index) else { return false }
            place.storeBytes(of: value, as: Int64.self)
        case .double:
            guard let value = statement.storedNumber(at: index) else { return false }
            place.storeBytes(of: value, as: Double.self)
        case .string:
            guard let value = statement.storedText(at: index) else { return false }
            place.initializeMemory(as: String.self, to: value)
        case .data:
            guard let value = statement.storedData(at: index) else { return false }
            place.initializeMemory(as: Data.self, to: value)
        case .optionalInt64:
            let value = statement.storedInteger(at: index)
            guard value != nil || statement.storedType(at: index) == .null else { return false }
            place.initializeMemory(as: Int64?.self, to: value)
        case .optionalDouble:
            let value = statement.storedNumber(at: index)
            guard value != nil || statement.storedType(at: index) == .null else { return false }
            place.initializeMemory(as: Double?.self, to: value)
        case .optionalString:
            let value = statement.storedText(at: index)
            guard value != nil || statement.storedType(at: index) == .null else { return false }
            place.initializeMemory(as: String?.self, to: value)
        case .optionalData:
            let value = statement.storedData(at: index)
            guard value != nil || statement.storedType(at: index) == .null else { return false }
            place.initializeMemory(as: Data?.self, to: value)
        }
        return true
    }

    private func destroy(_ count: Int32, from start: UnsafeMutableRawPointer) {
        var rest = kinds
        var place = start
        for _ in 0..<count {
            guard let kind = Kind(rawValue: rest & 15) else { return }
            switch kind {
            case .string, .optionalString: place.assumingMemoryBound(to: String?.self).deinitialize(count: 1)
            case .data, .optionalData: place.assumingMemoryBound(to: Data?.self).deinitialize(count: 1)
            case .int64, .double, .optionalInt64, .optionalDouble: break
            }
            rest >>= 4
            place += kind.stride
        }
    }
}
