/// What GRDB does, by the ids of cases; nothing in the encrypted build, since GRDB brings the plain engine with it, and
/// two engines in one process would take each other's calls.
enum GRDBMakers {
    #if PlainSQLite
        static var all: [String: Maker] {
            merged([bind, read, queries, functions, transactions, concurrency, packages, stores])
        }

        /// The version that the package asks for; GRDB does not tell its own.
        static let version = "7.10"
    #else
        static var all: [String: Maker] { [:] }
        static let version = ""
    #endif
}
