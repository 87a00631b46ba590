import CSealedDBSystem

/// Bytes that are collected to be written together. Unlike with an array, nothing but the room is checked for each of them.
///
/// Not for several threads at once.
final class ByteBuffer {
    private(set) var count = 0
    private var start: UnsafeMutablePointer<UInt8>
    private var capacity: Int

    init(capacity: Int) {
        start = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    deinit { start.deallocate() }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    func removeAll() { count = 0 }

    func remove(after kept: Int) { count = min(count, max(0, kept)) }

    /// Sees to it that so many bytes can be added without moving those that are there.
    func reserveAll(_ more: Int) { reserve(more) }

    @inline(__always)
    private func reserve(_ more: Int) {
        if capacity - count < more { grow(more) }
    }

    @inline(never)
    private func grow(_ more: Int) {
        let larger = max(capacity * 2, count + more)
        let room = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
        room.update(from: start, count: count)
        start.deallocate()
        (start, capacity) = (room, larger)
    }

    @inline(__always)
    func add(_ byte: UInt8) {
        reserve(1)
        start[count] = byte
        count &+= 1
    }

    @inline(__always)
    func add(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        reserve(bytes.count)
        UnsafeMutableRawPointer(start + count).copyMemory(from: source, byteCount: bytes.count)
        count &+= bytes.count
    }

    func add(_ text: String) {
        var text = text
        text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
    }

    @inline(__always)
    func add(_ text: StaticString) {
        add(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Adds a number in decimal digits.
    func add(integer value: Int64) {
        if value < 0 { add(UInt8(ascii: "-")) }
        // A number of 64 bits has at most 20 digits.
        reserve(20)
        var (rest, length) = (value.magnitude, 1)
        while rest >= 10 { (rest, length) = (rest / 10, length &+ 1) }
        rest = value.magnitude
        var index = count &+ length
        repeat {
            index &-= 1
            start[index] = UInt8(truncatingIfNeeded: rest % 10) &+ UInt8(ascii: "0")
            rest /= 10
        } while index > count
        count &+= length
    }

    /// Adds a finite number in the shortest form that reads as the same one, with a point or an exponent.
    func add(real value: Double) { add(value.description) }

    /// Adds a finite number with 17 digits, and with a point or an exponent.
    ///
    /// SQLite from 3.46 on reads these as the same number. It may read the shortest form as the next one.
    func addAllDigits(_ value: Double) {
        reserve(32)
        let written = (start + count).withMemoryRebound(to: CChar.self, capacity: 32) {
            sealeddb_print_17_digits(value, $0, 32)
        }
        let isWhole = !(count..<count + written).contains {
            start[$0] == UInt8(ascii: ".") || start[$0] == UInt8(ascii: "e")
        }
        count &+= written
        if isWhole { add(".0") }
    }

    /// Adds bytes in hex digits.
    func add(hex bytes: UnsafeRawBufferPointer, isUpperCase: Bool) {
        reserve(bytes.count * 2)
        let letters = isUpperCase ? UInt8(ascii: "A") : UInt8(ascii: "a")
        func digit(_ value: UInt8) -> UInt8 {
            value < 10 ? value &+ UInt8(ascii: "0") : value &- 10 &+ letters
        }
        for byte in bytes {
            add(digit(byte >> 4))
            add(digit(byte & 15))
        }
    }

    /// Adds bytes in Base64. <https://www.rfc-editor.org/rfc/rfc4648#section-4>
    func add(base64 bytes: UnsafeRawBufferPointer) {
        reserve((bytes.count + 2) / 3 * 4)
        let digits: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        var index = 0
        while index < bytes.count {
            let left = min(3, bytes.count - index)
            var group = UInt32(bytes[index]) << 16
            if left > 1 { group |= UInt32(bytes[index + 1]) << 8 }
            if left > 2 { group |= UInt32(bytes[index + 2]) }
            for digit in 0..<4 {
                let value = Int(group >> UInt32(18 - 6 * digit)) & 63
                add(digit <= left ? digits.utf8Start[value] : UInt8(ascii: "="))
            }
            index += 3
        }
    }
}
