#if PlainSQLite
    import GRDB

    extension StoreOptions {
        var grdbConfiguration: Configuration {
            get throws {
                guard pageSize == 0 else { throw Failure("GRDB has no part in this case.") }
                var result = Configuration()
                result.busyMode = .timeout(60)
                result.allowsUnsafeTransactions = true
                result.prepareDatabase { [journalMode, synchronous, cacheSize] db in
                    try db.execute(
                        sql: """
                            PRAGMA journal_mode = \(journalMode); PRAGMA synchronous = \(synchronous);
                            PRAGMA cache_size = -\(cacheSize)
                            """
                    )
                }
                return result
            }
        }

        func grdbQueue(_ path: String) throws -> DatabaseQueue {
            try DatabaseQueue(path: path, configuration: grdbConfiguration)
        }
    }

    extension Database {
        func integer(_ sql: String) throws -> Int64 {
            guard let result = try Int64.fetchOne(cachedStatement(sql: sql)) else { throw Failure("No row: \(sql)") }
            return result
        }

        /// Runs a query to its end; returns the number of rows.
        func count(_ sql: String) throws -> Int {
            let rows = try Row.fetchCursor(cachedStatement(sql: sql))
            var result = 0
            while try rows.next() != nil { result += 1 }
            return result
        }
    }
#endif
