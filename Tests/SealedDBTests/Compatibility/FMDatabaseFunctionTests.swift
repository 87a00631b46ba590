import Foundation
import SealedDB
import Testing

/// `FMDatabase`: the helpers of custom functions. A test for each group, named after it.
@Suite(.hangLimit)
struct FMDatabaseFunctionTests {
    private let db = FMDatabase()

    init() {
        #expect(db.open())
    }

    private func value(_ sql: String) throws -> Any? {
        let set = try db.executeQuery(sql, values: nil)
        #expect(try set.nextWithError())
        return set.object(forColumnIndex: 0)
    }

    @Test func argumentsAreRead() throws {
        db.makeFunctionNamed("describe", arguments: 1) { [unowned db] context, count, arguments in
            let value = arguments[0]
            // First of all: SQLite may turn the value into what is asked for.
            let type = db.valueType(value).rawValue
            let data = db.valueData(value).map { "\($0.count)" } ?? "nil"
            let text = db.valueString(value) ?? "nil"
            db.resultString(
                """
                \(count) \(type) \(db.valueInt(value)) \(db.valueLong(value)) \
                \(db.valueDouble(value)) \(data) \(text)
                """,
                context: context
            )
        }
        #expect(try value("select describe(4294967297)") as? String == "1 1 1 4294967297 4294967297.0 10 4294967297")
        #expect(try value("select describe(2.5)") as? String == "1 2 2 2 2.5 3 2.5")
        #expect(try value("select describe('7x')") as? String == "1 3 7 7 7.0 2 7x")
        #expect(try value("select describe(x'6162')") as? String == "1 4 0 0 0.0 2 ab")
        // FMDB reads an empty blob as nil.
        #expect(try value("select describe(x'')") as? String == "1 4 0 0 0.0 0 ")
        #expect(try value("select describe(null)") as? String == "1 5 0 0 0.0 nil nil")
    }

    @Test func resultsAreSet() throws {
        db.makeFunctionNamed("result", arguments: 1) { [unowned db] context, _, arguments in
            switch db.valueString(arguments[0]) {
            case "null": db.resultNull(context: context)
            case "null after all":
                db.resultInt(-1, context: context)
                db.resultNull(context: context)
            case "int": db.resultInt(-1, context: context)
            case "long": db.resultLong(.max, context: context)
            case "double": db.resultDouble(0.5, context: context)
            case "data": db.resultData(Data([0, 255]), context: context)
            case "no data": db.resultData(Data(), context: context)
            case "string": db.resultString("a\0b", context: context)
            default: break
            }
        }
        #expect(try value("select result('null')") is NSNull && value("select result('nothing')") is NSNull)
        #expect(try value("select result('null after all')") is NSNull)
        #expect(try value("select result('int')") as? Int == -1)
        #expect(try value("select result('long')") as? Int == .max)
        #expect(try value("select result('double')") as? Double == 0.5)
        #expect(try value("select result('data')") as? Data == Data([0, 255]))
        // FMDB makes NULL of it.
        #expect(try value("select result('no data')") as? Data == Data())
        #expect(try value("select result('string')") as? String == "a\0b")
    }

    @Test func resultsFail() throws {
        db.makeFunctionNamed("fail", arguments: 1) { [unowned db] context, _, arguments in
            switch db.valueString(arguments[0]) {
            case "text": db.resultError("what went wrong", context: context)
            case "code":
                db.resultError("what went wrong", context: context)
                db.resultErrorCode(SQLITE_MISMATCH, context: context)
            case "memory": db.resultErrorNoMemory(context: context)
            default: db.resultErrorTooBig(context: context)
            }
        }
        let failures: [(String, Int32, String)] = [
            ("text", SQLITE_ERROR, "what went wrong"), ("code", SQLITE_MISMATCH, "what went wrong"),
            ("memory", SQLITE_NOMEM, "out of memory"), ("size", SQLITE_TOOBIG, "string or blob too big"),
        ]
        for (kind, code, message) in failures {
            let error = #expect(throws: DatabaseError.self) { _ = try value("select fail('\(kind)')") }
            #expect(error?.code == code && error?.message == message)
        }
    }

    @Test func wrongNumberOfArgumentsAndClosedDatabase() {
        db.makeFunctionNamed("two", arguments: 2) { _, _, _ in }
        #expect(db.executeQuery("select two(1)", withArgumentsIn: []) == nil)
        #expect(db.lastErrorMessage() == "wrong number of arguments to function two()")
        let closed = FMDatabase()
        closed.makeFunctionNamed("f", arguments: 0) { _, _, _ in }
        #expect(closed.lastErrorCode() == SQLITE_MISUSE)
    }
}
