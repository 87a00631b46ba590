import Foundation
import SealedDB
import Testing

/// Stores that are exported to a real PostgreSQL server.
@Suite(.hangLimit, .enabled(if: PostgreSQLServer.obstacle == nil, "\(PostgreSQLServer.obstacle ?? "")"))
struct ExportTests {
    private let sandbox: Sandbox
    private let server: PostgreSQLServer
    private let database: String

    init() throws {
        sandbox = try Sandbox()
        server = try PostgreSQLServer.shared.get()
        database = "test_" + UUID().uuidString.replacing("-", with: "").lowercased()
        _ = try server.query("postgres", "CREATE DATABASE \(database) TEMPLATE template0", in: sandbox)
        try sandbox.makeKey()
        try sandbox.succeed("create", "db", "--key-file", "key")
    }

    private func execute(_ script: String) throws {
        try sandbox.succeed("exec", "db", "-", "--key-file", "key", input: script)
    }

    private func export(_ options: String..., to url: String? = nil, status: Int32 = 0) throws -> Outcome {
        let arguments = ["export", "db", "--key-file", "key", "--to", url ?? server.url(database)] + options
        let outcome = try sandbox.run([Tool.sealdb] + arguments)
        #expect(outcome.status == status, "\(outcome.status): \(outcome.output)\(outcome.error)")
        return outcome
    }

    private func query(_ sql: String) throws -> String {
        try server.query(database, sql, in: sandbox).trimmingCharacters(in: .newlines)
    }

    /// How many tables of users there are.
    private func tableCount() throws -> String {
        try query(
            "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace::regnamespace::text !~ '^pg_|^info'"
        )
    }

    // MARK: What arrives

    @Test func valuesOfEveryKind() throws {
        try execute(
            """
            CREATE TABLE v (id INTEGER PRIMARY KEY, i INTEGER, r REAL, t TEXT, b BLOB, n NUMERIC, m DECIMAL(10, 2), o BOOLEAN,
                d DATE, s DATETIME, z TIMESTAMP);
            INSERT INTO v VALUES (1, 9223372036854775807, 9e999, 'a' || char(9, 10, 13) || '\\.' || char(10) || '\\N\\\\', x'00ff5c0a',
                0.1, 12.5, 1, '2026-11-23', '2026-11-23 08:15:30.25', '2026-11-23T08:15+02:00');
            INSERT INTO v VALUES (-5, -9223372036854775808, 5e-324, 'ü€😀', x'', 1e300, -99999999.99, 0, '0001-01-01',
                '9999-12-31 23:59:59.999999', '2026-11-23 08:15Z');
            INSERT INTO v (id, r, t, n) VALUES (7, -0.0, '', 123456789012), (8, 1.7976931348623157e308, NULL, -0.00001);
            """
        )
        let outcome = try export()
        #expect(outcome.output.hasPrefix("v: 4 rows, as they were sent\n1 table in postgres@"), "\(outcome.output)")
        #expect(
            try query("SELECT id, i, r, encode(convert_to(t, 'UTF8'), 'hex'), b, m, o, d, s FROM v ORDER BY id")
                == """
                -5|-9223372036854775808|5e-324|c3bce282acf09f9880|\\x|-99999999.99|f|0001-01-01|9999-12-31 23:59:59.999999
                1|9223372036854775807|Infinity|61090a0d5c2e0a5c4e5c5c|\\x00ff5c0a|12.50|t|2026-11-23|2026-11-23 08:15:30.25
                7||0||||||
                8||1.7976931348623157e+308||||||
                """
        )
        #expect(try query("SELECT n FROM v WHERE id IN (1, 7, 8) ORDER BY id") == "0.1\n123456789012\n-0.00001")
        #expect(try query("SELECT n = 1e300 FROM v WHERE id = -5") == "t")
        #expect(
            try query("SELECT z AT TIME ZONE 'UTC' FROM v WHERE z IS NOT NULL ORDER BY z")
                == "2026-11-23 06:15:00\n2026-11-23 08:15:00"
        )
    }

    @Test func keysIndexesAndSequences() throws {
        try execute(
            """
            CREATE TABLE "a ""b' ; --" ("k 1" TEXT, k2 INT, v TEXT DEFAULT 'x\\', PRIMARY KEY (k2, "k 1")) WITHOUT ROWID;
            INSERT INTO "a ""b' ; --" VALUES ('x', 1, 'y');
            CREATE TABLE p (id INTEGER PRIMARY KEY AUTOINCREMENT, u TEXT UNIQUE, c INT CHECK (c > 0));
            INSERT INTO p VALUES (1, 'a', 1), (40, 'b', 2); DELETE FROM p WHERE id = 40;
            CREATE TABLE c (p INT REFERENCES p ON DELETE CASCADE ON UPDATE RESTRICT DEFERRABLE INITIALLY DEFERRED,
                k1 TEXT, k2 INT, FOREIGN KEY (k2, k1) REFERENCES "a ""b' ; --");
            INSERT INTO c VALUES (1, 'x', 1), (NULL, 'q', NULL);
            CREATE INDEX "i ""1" ON c (k1 DESC, k2); CREATE UNIQUE INDEX part ON c (p) WHERE k2 = 1;
            CREATE TABLE p_id_seq (nokey); CREATE TABLE p_pkey (nokey); INSERT INTO p_pkey VALUES (1);
            """
        )
        _ = try export()
        #expect(try query("SELECT nextval(pg_get_serial_sequence('p', 'id'))") == "41")
        #expect(try query("INSERT INTO p (u, c) VALUES ('n', 3) RETURNING id") == "42")
        #expect(try query("INSERT INTO \"a \"\"b' ; --\" (\"k 1\", k2) VALUES ('n', 3) RETURNING v") == "x\\")
        #expect(throws: ChildProcess.Failure.self) { try query("INSERT INTO p (u, c) VALUES ('m', 0)") }
        #expect(throws: ChildProcess.Failure.self) { try query("INSERT INTO p (u, c) VALUES ('a', 1)") }
        #expect(throws: ChildProcess.Failure.self) { try query("INSERT INTO c VALUES (9, NULL, NULL)") }
        #expect(
            try query(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' ORDER BY pg_get_constraintdef(oid) COLLATE \"C\""
            ) == """
                FOREIGN KEY (k2, k1) REFERENCES "a ""b' ; --"(k2, "k 1")
                FOREIGN KEY (p) REFERENCES p(id) ON UPDATE RESTRICT ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
                """
        )
        #expect(try query("DELETE FROM p WHERE id = 1; SELECT count(*) FROM c") == "1")
        #expect(
            try query(
                "SELECT indexdef FROM pg_indexes WHERE indexname IN ('i \"1', 'part') ORDER BY indexname COLLATE \"C\""
            ) == """
                CREATE INDEX "i ""1" ON public.c USING btree (k1 DESC, k2)
                CREATE UNIQUE INDEX part ON public.c USING btree (p) WHERE (k2 = 1)
                """
        )
    }

    @Test func widenedColumnsAndUTF16() throws {
        try execute(
            """
            PRAGMA encoding = 'UTF-16be'; CREATE TABLE w (k TEXT PRIMARY KEY, i INT, t TEXT);
            INSERT INTO w VALUES ('ü€😀', 'nine', 'a' || char(0) || 'b'), (NULL, 7, x'01'), ('x', 1.5, CAST(x'd800' AS TEXT));
            """
        )
        #expect(try export(status: 65).error.contains("Nothing was done."))
        #expect(try tableCount() == "0")
        _ = try export("--widen")
        #expect(try query("SELECT k, i, t FROM w ORDER BY i") == "x|1.5|\\xd800\n|7|\\x01\nü€😀|nine|\\x610062")
    }

    @Test func someTablesWithoutRowsInAnotherSchema() throws {
        try execute(
            "CREATE TABLE a (x INTEGER PRIMARY KEY); INSERT INTO a VALUES (5); CREATE TABLE b (x); CREATE TABLE c (x);"
        )
        _ = try export("--schema", "Über \"s\"", "--schema-only", "--table", "A", "--table", "c")
        #expect(
            try query("SELECT schemaname, tablename FROM pg_tables WHERE tablename < 'd' ORDER BY 2")
                == "Über \"s\"|a\nÜber \"s\"|c"
        )
        #expect(try query("SELECT count(*) FROM \"Über \"\"s\"\"\".a") == "0")
    }

    @Test func reportAsJSON() throws {
        try execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); CREATE VIEW v AS SELECT 1;")
        let outcome = try export("--json", "--progress", "json")
        let object = try #require(try JSONSerialization.jsonObject(with: outcome.outputData) as? [String: Any])
        #expect(
            object["status"] as? String == "done" && (object["target"] as? String)?.hasSuffix("/\(database)") == true
        )
        let table = try #require((object["tables"] as? [[String: Any]])?.first)
        #expect(table["rowCount"] as? Int == 2 && (table["digest"] as? String)?.count == 64)
        #expect((object["notTaken"] as? [[String: Any]])?.first?["object"] as? String == "view")
        #expect(outcome.error.contains("\"phase\":\"copy\""))
        #expect(try export("--quiet", "--schema", "other").output.isEmpty)
    }

    @Test func aBlobOfManyMegabytes() throws {
        try execute("CREATE TABLE t (b BLOB); INSERT INTO t VALUES (zeroblob(60000000)), (randomblob(1000000));")
        _ = try export()
        #expect(try query("SELECT length(b) FROM t ORDER BY 1") == "1000000\n60000000")
    }

    // MARK: What is there already

    @Test func tablesThatAreThereAreNotTouched() throws {
        try execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1); CREATE TABLE u (a INT);")
        _ = try query("CREATE TABLE u (a bigint); INSERT INTO u VALUES (7)")
        let outcome = try export(status: 73)
        #expect(
            outcome.error.contains("has these already: \"u\"") && outcome.error.contains("rolled back"),
            "\(outcome.error)"
        )
        #expect(try tableCount() == "1" && query("SELECT a FROM u") == "7")
        #expect(
            try export("--resume", status: 73).error.contains("\"u\" of schema \"public\" is there, and is another one")
        )
        #expect(try query("SELECT a FROM t UNION ALL SELECT a FROM u ORDER BY a") == "1\n7")
    }

    @Test func resumingSkipsWhatIsWhole() throws {
        try execute(
            """
            CREATE TABLE a (x INTEGER PRIMARY KEY, y TEXT); INSERT INTO a VALUES (1, 'one'), (2, 'two');
            CREATE TABLE b (x INT REFERENCES a); INSERT INTO b VALUES (1); CREATE TABLE c (x INT); INSERT INTO c VALUES (1);
            """
        )
        // The same name as an index of a later table: that one fails, what is before it stays.
        _ = try query("CREATE TABLE b_x_fkey (a int); CREATE SEQUENCE c")
        _ = try export("--resume", status: 73)
        #expect(try query("SELECT count(*) FROM a") == "2")
        _ = try query("DROP SEQUENCE c")
        let outcome = try export("--resume")
        #expect(
            outcome.lines.prefix(2) == ["a: there already, with the same rows", "b: there already, with the same rows"]
        )
        #expect(outcome.output.contains("c: 1 row, as they were sent"), "\(outcome.output)")
        #expect(try query("SELECT count(*) FROM pg_constraint WHERE contype = 'f'") == "1")
        #expect(try export("--resume").output.contains("c: there already"))
        // One value of another row, and the same number of rows.
        _ = try query("UPDATE a SET y = 'too' WHERE x = 2")
        _ = try export("--resume", status: 73)
    }

    // MARK: What goes wrong

    /// Exports a table on which another session has its hand, and calls `body` when the export waits for it.
    private func interrupted(_ body: (ChildProcess) throws -> Void) throws -> (status: Int32, error: String) {
        try execute("CREATE TABLE first (a INT); INSERT INTO first VALUES (1); CREATE TABLE t (a INT);")
        let holder = try server.session(database, "CREATE TABLE t (); SELECT pg_sleep(100000)", in: sandbox)
        let mine = "FROM pg_stat_activity WHERE datname = '\(database)'"
        while try query("SELECT count(*) \(mine) AND wait_event = 'PgSleep'") == "0" {}
        let exporter = try ChildProcess(
            [Tool.sealdb, "export", "db", "--key-file", "key", "--to", server.url(database)],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: sandbox.path("out"), error: sandbox.path("err"))
        )
        while try query("SELECT count(*) \(mine) AND application_name = 'sealdb' AND wait_event_type = 'Lock'") == "0" {
            #expect(!exporter.hasEnded)
        }
        try body(exporter)
        let status = exporter.wait()
        _ = try query("SELECT pg_terminate_backend(pid) \(mine) AND wait_event = 'PgSleep'")
        _ = holder.wait()
        #expect(try tableCount() == "0")
        return (status, String(decoding: try sandbox.contents("err"), as: UTF8.self))
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func aSignalRollsBack(_ signal: Int32) throws {
        let outcome = try interrupted { #expect(kill($0.identifier, signal) == 0) }
        #expect(
            outcome.status == 128 + signal && outcome.error.contains("Interrupted. PostgreSQL has nothing"),
            "\(outcome)"
        )
    }

    @Test func aServerThatEndsTheSession() throws {
        let outcome = try interrupted { _ in
            _ = try query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sealdb' AND datname = '\(database)'"
            )
        }
        #expect(outcome.status == 69 && outcome.error.contains("rolled back"), "\(outcome)")
    }

    @Test func aKilledExportLeavesNothing() throws {
        let outcome = try interrupted { #expect(kill($0.identifier, SIGKILL) == 0) }
        #expect(outcome.status == -SIGKILL)
    }

    @Test func rowsOlderThanTheirConstraintAreRejected() throws {
        try execute(
            """
            CREATE TABLE t (a INT CHECK (a > 0)); PRAGMA ignore_check_constraints = ON; INSERT INTO t VALUES (-4321);
            """
        )
        let outcome = try export(status: 65)
        #expect(outcome.error.contains("t_a_check") && !outcome.error.contains("4321"), "\(outcome.error)")
        #expect(try tableCount() == "0")
        #expect(try export("--without", "checks").output.contains("not taken: check \"t\": left out as asked for"))
    }

    /// PostgreSQL's details show the values.
    @Test func aDuplicateIsToldWithoutItsValue() throws {
        // Two values for SQLite, one text for PostgreSQL.
        try execute("CREATE TABLE t (a, UNIQUE (a)); INSERT INTO t VALUES (98765), ('98765');")
        let outcome = try export("--widen", status: 65)
        #expect(outcome.error.contains("t_a_key") && !outcome.error.contains("98765"), "\(outcome.error)")
    }

    @Test func databasesInOtherEncodingsAreRefused() throws {
        for encoding in ["LATIN1", "SQL_ASCII"] {
            let other = database + encoding.lowercased()
            _ = try server.query(
                "postgres",
                "CREATE DATABASE \(other) ENCODING '\(encoding)' LOCALE 'C' TEMPLATE template0",
                in: sandbox
            )
            #expect(try export(to: server.url(other), status: 78).error.contains("has the encoding \(encoding)"))
        }
    }

    @Test func rolesPasswordsAndTLS() throws {
        try execute("CREATE TABLE t (a INT);")
        let role = database
        _ = try query("CREATE ROLE \(role) LOGIN PASSWORD 'geheim'; CREATE SCHEMA own AUTHORIZATION \(role)")
        func url(_ host: String, _ password: String = ":geheim", _ rest: String = "") -> String {
            "postgresql://\(role)\(password)@\(host):\(server.port)/\(database)\(rest)"
        }
        _ = try export("--schema", "own", to: url("127.0.0.1"))
        #expect(try export(to: url("127.0.0.1"), status: 73).error.contains("permission denied for schema public"))
        #expect(
            try export(to: url("127.0.0.1", ":falsch"), status: 69).error.contains("password authentication failed")
        )
        // The kernel takes this address for this machine, and nobody else does: as for another machine, TLS is insisted on.
        #expect(try export(to: url("0.0.0.0"), status: 73).error.contains("permission denied"))
        for mode in ["disable", "allow"] {
            let outcome = try export(to: url("0.0.0.0", ":geheim", "?sslmode=\(mode)"), status: 64)
            #expect(outcome.error.contains("in plaintext") && !outcome.error.contains("geheim"))
        }
        let allowed = url("0.0.0.0", ":geheim", "?sslmode=disable")
        #expect(try export("--allow-unencrypted", to: allowed, status: 73).error.contains("permission denied"))
        // Without TLS the same is refused. Tests beside this one need none.
        func setTLS(_ value: String) throws {
            _ = try server.query("postgres", "ALTER SYSTEM SET ssl = \(value)", in: sandbox)
            _ = try server.query("postgres", "SELECT pg_reload_conf()", in: sandbox)
            while try query("SHOW ssl") != value {}
        }
        try setTLS("off")
        defer { #expect(throws: Never.self) { try setTLS("on") } }
        let refused = try export(to: url("0.0.0.0"), status: 69)
        #expect(refused.error.contains("does not support SSL") && !refused.error.contains("geheim"), "\(refused.error)")
        #expect(try export("--allow-unencrypted", to: url("0.0.0.0"), status: 73).error.contains("permission denied"))
        // From the environment, which nobody else sees.
        let outcome = try sandbox.run(
            [
                Tool.sealdb, "export", "db", "--key-file", "key", "--to", url("127.0.0.1", ""), "--schema", "own",
                "--resume",
            ],
            environment: ["PGPASSWORD": "geheim"]
        )
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    @Test func aPasswordIsNeverShown() throws {
        for url in [
            "postgresql://u:ge@heim@127.0.0.1/x", "postgresql://u:ge/heim@127.0.0.1/x",
            "postgresql://u:1/heim@127.0.0.1/x",
            "postgresql://u:heim%@127.0.0.1/x", "postgresql://u:heim@127.0.0.1:1x/y", "heim", "password=heim x",
            "postgresql://u:heim@127.0.0.1:1/y", "postgresql://heim:heim@127.0.0.1:\(server.port)/y",
        ] {
            let outcome = try sandbox.run([Tool.sealdb, "export", "db", "--key-file", "key", "--to", url, "--json"])
            #expect([64, 69].contains(outcome.status), "\(outcome.status)")
            #expect(!outcome.error.contains("heim") && !outcome.output.contains("heim"), "\(outcome.error)")
        }
    }

    /// What others write meanwhile is not exported, and they do not wait.
    @Test func theStoreIsReadAtOneMoment() throws {
        try execute(
            "PRAGMA journal_mode = wal; CREATE TABLE a (x INT); INSERT INTO a VALUES (1); CREATE TABLE b (x INT);"
        )
        let writer = try sandbox.connection()
        defer { writer.close() }
        let holder = try server.session(database, "CREATE TABLE a (); SELECT pg_sleep(100000)", in: sandbox)
        let mine = "FROM pg_stat_activity WHERE datname = '\(database)'"
        while try query("SELECT count(*) \(mine) AND wait_event = 'PgSleep'") == "0" {}
        let exporter = try ChildProcess(
            [Tool.sealdb, "export", "db", "--key-file", "key", "--to", server.url(database)],
            directory: sandbox.directory,
            streams: .files(input: "/dev/null", output: sandbox.path("out"), error: sandbox.path("err"))
        )
        while try query("SELECT count(*) \(mine) AND wait_event_type = 'Lock'") == "0" { #expect(!exporter.hasEnded) }
        try writer.executeUpdate("INSERT INTO b VALUES (2)", values: nil)
        try writer.executeUpdate("INSERT INTO a VALUES (2)", values: nil)
        _ = try query("SELECT pg_terminate_backend(pid) \(mine) AND wait_event = 'PgSleep'")
        _ = holder.wait()
        #expect(exporter.wait() == 0)
        #expect(try query("SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)") == "1|0")
    }
}
