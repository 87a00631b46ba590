import Foundation

/// Which moment of a store is wanted from a repository; see ``RepositoryRestore``.
public struct RepositoryMoment: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case newest
        case generation(Int64)
        case time(RepositoryTime)
        /// The commit that ends with this frame of this segment.
        case commit(generation: Int64, sequence: Int64, frame: Int64)
    }

    let kind: Kind

    /// Whether it is the place of one commit, and no time or end.
    var isOfPlace: Bool {
        if case .commit = kind { return true }
        return false
    }

    /// Whether it is the last one that is kept of a generation, and not of a time.
    var isOfGeneration: Bool {
        if case .generation = kind { return true }
        return false
    }

    /// The last one that was shipped.
    public static let newest = RepositoryMoment(kind: .newest)

    /// The last one of a generation, such as the last one before a rotation. If the end of that was removed with old
    /// snapshots, it is the last one that was kept, and ``RepositoryRestore/Report/remarks`` says so.
    /// - Parameter number: its number, from 1 on, as `sealdb snapshots` lists them.
    public static func generation(_ number: Int64) -> RepositoryMoment { .init(kind: .generation(number)) }

    /// The last one that was shipped by then, by the clock of the machine that ships.
    /// - Parameter date: of which milliseconds count.
    public static func time(_ date: Date) -> RepositoryMoment { .time(RepositoryTime(date)) }

    package static func time(_ time: RepositoryTime) -> RepositoryMoment { .init(kind: .time(time)) }

    static func commit(generation: Int64, sequence: Int64, frame: Int64) -> RepositoryMoment {
        .init(kind: .commit(generation: generation, sequence: sequence, frame: frame))
    }
}
