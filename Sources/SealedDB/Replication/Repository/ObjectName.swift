/// The names of the objects of a repository. Nothing else is ever read, listed or removed there.
enum ObjectName: Hashable {
    /// Marks a directory as a repository.
    case mark
    /// Pages of a snapshot, by their SHA-256.
    case chunk(String)
    /// Key slots, by their SHA-256.
    case slots(String)
    /// What the store was after the segment with this number, or at the beginning of the generation.
    case snapshot(generation: Int64, sequence: Int64)
    /// A part of the log.
    case segment(generation: Int64, sequence: Int64)
    /// Says that what followed the segment with this number was not kept.
    case cut(generation: Int64, sequence: Int64)
    /// Says that a whole generation was not kept.
    case end(generation: Int64)

    func isOfGeneration(_ isMeant: (Int64) -> Bool) -> Bool {
        switch self {
        case .snapshot(let generation, _), .segment(let generation, _), .cut(let generation, _), .end(let generation):
            isMeant(generation)
        case .mark, .chunk, .slots: false
        }
    }

    static let generations = "generations"
    static let chunks = "chunks"
    static let allSlots = "slots"

    /// Whether a name is that of a place for objects, or lies in one.
    static func isOfRepository(_ name: String) -> Bool {
        [generations, chunks, allSlots].contains { name.utf8.elementsEqual($0.utf8) || name.begins(with: $0 + "/") }
    }

    /// Whether the name is the digest of the bytes.
    var isDigest: Bool {
        switch self {
        case .chunk, .slots: true
        case .mark, .snapshot, .segment, .cut, .end: false
        }
    }

    private static let digitsOfGeneration = 8
    private static let digitsOfSequence = 12
    /// No object has a higher number. So what follows one can be counted, whatever name somebody has put there.
    static let lastNumber: Int64 = 999_999_999_999_999

    var text: String {
        switch self {
        case .mark: "repository"
        case .chunk(let digest):
            "\(ObjectName.chunks)/\(String(decoding: digest.utf8.prefix(2), as: UTF8.self))/\(digest)"
        case .slots(let digest): "\(ObjectName.allSlots)/\(digest)"
        case .snapshot(let generation, let sequence): ObjectName.text(generation, "snapshot", sequence)
        case .segment(let generation, let sequence): ObjectName.text(generation, "segment", sequence)
        case .cut(let generation, let sequence): ObjectName.text(generation, "cut", sequence)
        case .end(let generation):
            "\(ObjectName.generations)/\(ObjectName.padded(generation, ObjectName.digitsOfGeneration))/end"
        }
    }

    private static func text(_ generation: Int64, _ kind: String, _ sequence: Int64) -> String {
        let number = padded(sequence, digitsOfSequence)
        return "\(generations)/\(padded(generation, digitsOfGeneration))/\(kind)-\(number)"
    }

    private static func padded(_ number: Int64, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }

    /// - Returns: `nil` for a name that ``text`` does not give.
    init?(_ name: String) {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        let found: ObjectName? =
            switch parts.count {
            case 1: .mark
            case 2: .slots(parts[1])
            default: ObjectName.chunkOrPart(parts)
            }
        switch found {
        case .chunk(let digest)?, .slots(let digest)?: guard ObjectDigest.isOne(digest) else { return nil }
        default: break
        }
        guard let found, found.text.utf8.elementsEqual(name.utf8) else { return nil }
        self = found
    }

    private static func chunkOrPart(_ parts: [String]) -> ObjectName? {
        guard parts.count == 3 else { return nil }
        if parts[2] == "end" {
            guard let generation = Int64(parts[1]), (1...lastNumber).contains(generation) else { return nil }
            return .end(generation: generation)
        }
        let kind = parts[2].split(separator: "-").map(String.init)
        guard kind.count == 2, let generation = Int64(parts[1]), let sequence = Int64(kind[1]) else {
            return .chunk(parts[2])
        }
        guard (1...lastNumber).contains(generation), (0...lastNumber).contains(sequence) else { return nil }
        if kind[0].begins(with: "snapshot") { return .snapshot(generation: generation, sequence: sequence) }
        return kind[0].begins(with: "cut")
            ? .cut(generation: generation, sequence: sequence)
            : .segment(generation: generation, sequence: sequence)
    }
}
