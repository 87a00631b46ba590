/// A copy of a store, under a new key, that is made while a queue or pool uses the store.
///
/// One thread at a time may call its methods.
protocol ServiceCopy: AnyObject {
    var file: StoreCopy { get }
    /// Whether ``advance(_:)`` needs the writer's connection, so that it is called within a turn.
    var needsTurns: Bool { get }
    /// Whether it is time to make others wait while the rest is copied.
    var isNearlyComplete: Bool { get }
    /// Whether the copy cannot be completed any more, because a connection that it needs was closed.
    var isLost: Bool { get }
    /// How far the copy is.
    var progress: KeyRotation.Progress { get }
    /// The file whose place the copy has taken. It is set to `nil` when others do not wait any more.
    var replacedFile: ReplacedFile? { get set }

    /// Copies the next pages.
    /// - Parameter progress: called with what is done, outside of any turn, if the copy needs none. If it throws, the call
    ///   ends.
    func advance(_ progress: ((KeyRotation.Progress) throws -> Void)?) throws(DatabaseError)

    /// Whether ``relieveLog(_:)`` is due.
    var needsRelief: Bool { get }

    /// Lets the log begin anew, which the copy keeps from it.
    /// - Parameter connection: the writer's, in a turn of its own.
    func relieveLog(_ connection: Connection) throws(DatabaseError)

    /// Whether little is left, now that nothing in this process can write to the store. If not, others should not wait for it.
    func isCloseEnough() throws(DatabaseError) -> Bool

    /// Copies the rest. From now on nothing in this process may write to the store.
    /// - Parameters:
    ///   - connection: the writer's.
    ///   - progress: called with what is done. If it throws, the call ends.
    func complete(
        _ connection: Connection,
        _ progress: ((KeyRotation.Progress) throws -> Void)?
    ) throws(DatabaseError)

    /// Whether the copy holds everything that the store holds. Call it only while nobody else can write to the store.
    func isCurrent() throws(DatabaseError) -> Bool

    /// Verifies the complete copy, and syncs it. Nobody else may write to the store.
    /// - Parameter store: a connection to the store, and how that is encrypted.
    func settle(
        comparingWith store: (connection: Connection, sealing: Sealing),
        _ report: ProgressReport
    ) throws(DatabaseError) -> PageTotals

    /// The share of a rotation that comes before ``settle(comparingWith:_:)``, by estimate.
    var share: Double { get }

    /// Removes the copy. May be called more than once.
    func discard()
}

extension ServiceCopy {
    func complete(_ connection: Connection) throws(DatabaseError) { try complete(connection, nil) }

    func isCloseEnough() throws(DatabaseError) -> Bool { true }

    var needsRelief: Bool { false }

    func relieveLog(_ connection: Connection) throws(DatabaseError) {}

    func advance() throws(DatabaseError) { try advance(nil) }
}
