/// The bytes of a file, one by one or in runs, in constant memory.
struct ByteSource {
    private let fill: (inout [UInt8]) throws -> Int
    private var buffer: [UInt8]
    private var index = 0
    private var limit = 0
    /// The number of the line, from 1.
    private(set) var line = 1
    /// Takes what is read, while it is kept.
    var copy: ByteBuffer?

    /// - Parameter fill: writes the next bytes to the front of a buffer, and returns their number; 0 at the end.
    init(bufferSize: Int, fill: @escaping (inout [UInt8]) throws -> Int) {
        self.fill = fill
        buffer = [UInt8](repeating: 0, count: bufferSize)
    }

    /// The next byte, which stays; `nil` at the end.
    @inline(__always)
    mutating func peek() throws -> UInt8? {
        if index == limit {
            limit = try fill(&buffer)
            index = 0
            if limit == 0 { return nil }
        }
        return buffer[index]
    }

    /// Takes the byte that ``peek()`` has returned.
    @inline(__always)
    mutating func take() {
        let byte = buffer[index]
        index &+= 1
        if byte == UInt8(ascii: "\n") { line &+= 1 }
        copy?.add(byte)
    }

    /// Takes bytes up to one that ends them, or to the end of the buffer. None of them may be a line feed.
    @inline(__always)
    mutating func takeRun(into target: ByteBuffer, _ endsRun: (UInt8) -> Bool) {
        let (first, last) = (index, limit)
        index = buffer.withUnsafeBytes { bytes in
            var end = first
            while end < last, !endsRun(bytes[end]) { end &+= 1 }
            let run = UnsafeRawBufferPointer(rebasing: bytes[first..<end])
            target.add(run)
            copy?.add(run)
            return end
        }
    }
}
