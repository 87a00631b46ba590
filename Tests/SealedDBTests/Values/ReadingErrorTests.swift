import Foundation
import SealedDB
import Testing

/// What cannot be read as the type asked for is an error that says where, and does not quote the value.
@Suite(.hangLimit)
struct ReadingErrorTests {
    private let database: Database

    init() throws {
        database = try Database.testing(nil)
    }

    private func message<Value: ColumnReadable>(_ type: Value.Type, _ expression: SQL) -> String? {
        do throws(DatabaseError) {
            _ = try database.executeQuery("SELECT \(expression) AS c").all(type)
            return nil
        } catch {
            #expect(error.code == SQLITE_MISMATCH)
            #expect(error.reason == .typeMismatch)
            #expect(database.lastErrorMessage() == error.message)
            return error.message.replacing("Row 1, column \"c\" (index 0): ", with: "")
        }
    }

    @Test func messageNamesRowColumnAndTypes() throws {
        let error = #expect(throws: DatabaseError.self) {
            try database.executeQuery(
                "SELECT value, CASE value WHEN 3 THEN NULL ELSE 'x' END AS email FROM json_each('[1,2,3]')"
            ).all((Int, String).self)
        }
        #expect(
            error?.message
                == "Row 3, column \"email\" (index 1): expected String, found NULL. Read it as an optional."
        )
        #expect(error?.sql?.hasPrefix("SELECT value") == true)
    }

    @Test func integersThatDoNotFit() {
        let fit = "expected Int8, found INTEGER that does not fit."
        #expect(message(Int8.self, "300") == fit)
        #expect(message(Int8.self, "-129") == fit)
        #expect(message(Int16.self, "32768") != nil)
        #expect(message(Int32.self, "2147483648") != nil)
        #expect(message(UInt8.self, "-1") != nil)
        #expect(message(UInt16.self, "65536") != nil)
        #expect(message(UInt32.self, "-1") != nil)
        #expect(message(Float.self, "1e300") == "expected Float, found REAL that does not fit.")
        #expect(message(Float.self, "9e999") == nil)
    }

    @Test func otherTypes() {
        #expect(message(Int.self, "'5'") == "expected Int, found TEXT.")
        #expect(message(Int.self, "5.0") == "expected Int, found REAL.")
        #expect(message(Int.self, "x'05'") == "expected Int, found BLOB.")
        #expect(message(Bool.self, "'true'") == "expected Bool, found TEXT.")
        #expect(message(Bool.self, "1.0") != nil)
        #expect(message(Double.self, "'1.5'") == "expected Double, found TEXT.")
        #expect(message(Float.self, "x''") != nil)
        #expect(message(String.self, "5") == "expected String, found INTEGER.")
        #expect(message(String.self, "x'61'") == "expected String, found BLOB.")
        #expect(message(Substring.self, "5") == "expected Substring, found INTEGER.")
        #expect(message(Data.self, "'text'") == "expected Data, found TEXT.")
        #expect(message([UInt8].self, "'text'") != nil)
        #expect(message(UUID.self, "5") == "expected UUID, found INTEGER.")
        #expect(message(URL.self, "5") != nil)
        #expect(message(Decimal.self, "x'31'") == "expected Decimal, found BLOB.")
        #expect(message(Date.self, "x'31'") != nil)
        #expect(message(Int?.self, "'5'") == "expected Int, found TEXT.")
    }

    @Test func nullForWhatIsNotOptional() {
        let advice = "found NULL. Read it as an optional."
        #expect(message(Int.self, "NULL") == "expected Int, " + advice)
        #expect(message(UInt8.self, "NULL") != nil)
        #expect(message(Double.self, "NULL") != nil)
        #expect(message(Float.self, "NULL") != nil)
        #expect(message(Bool.self, "NULL") != nil)
        #expect(message(String.self, "NULL") == "expected String, " + advice)
        #expect(message(Substring.self, "NULL") != nil)
        #expect(message(Data.self, "NULL") != nil)
        #expect(message([UInt8].self, "NULL") != nil)
        #expect(message(Date.self, "NULL") != nil)
        #expect(message(UUID.self, "NULL") != nil)
        #expect(message(URL.self, "NULL") != nil)
        #expect(message(Decimal.self, "NULL") != nil)
        #expect(message(JSON<[Int]>.self, "NULL") != nil)
    }

    @Test func malformedValuesAreNotQuoted() {
        for secret: SQL in ["'secret'", "'12 secret'", "''"] {
            #expect(message(UUID.self, secret)?.contains("secret") == false)
            #expect(message(Decimal.self, secret)?.contains("secret") == false)
            #expect(message(JSON<[Int]>.self, secret)?.contains("secret") == false)
        }
        #expect(message(UUID.self, "x'00'") == "expected UUID, found BLOB that has not 16 bytes.")
        #expect(message(URL.self, "'not a secret url'") == "expected URL, found TEXT that is no URL.")
        #expect(message(URL.self, "''") != nil)
        #expect(message(String.self, "CAST(x'ff' AS TEXT)") == "expected String, found TEXT that is not valid UTF-8.")
    }

    @Test func decimalsThatWouldBeRounded() {
        #expect(message(Decimal.self, "'1234567890123456789012345678901234567890123'") != nil)
        #expect(message(Decimal.self, "'1e-500'") != nil)
        #expect(message(Decimal.self, "'1e500'") != nil)
        #expect(message(Decimal.self, "1e300") != nil)
        #expect(message(Decimal.self, "9e999") != nil)
        for text: SQL in ["'1,5'", "'1.5.2'", "'e5'", "'.'", "' 1'", "'NaN'", "'0x10'"] {
            #expect(message(Decimal.self, text) != nil)
        }
    }

    @Test func dictionaryKeysInJSONAreNotQuoted() {
        let text = message(JSON<[String: [Int]]>.self, #"'{"secret": [1, "x"]}'"#)
        #expect(text?.contains("at ?.[1]: expected Int") == true)
        let error = message(JSON<Named>.self, "'{}'")
        #expect(error == "expected Named, found TEXT whose JSON does not match (no value for name).")
    }

    private struct Named: Codable { var name: String }

    /// They are read once, from their start to their end.
    @Test func longTextsAreNoDecimals() {
        let digits = String(repeating: "7", count: 200_000)
        for text in ["x", ".x", "e", "e+", ".5.", "-"] { #expect(message(Decimal.self, "\(digits + text)") != nil) }
        for text in ["", "+", ".", "e5", ".e5", "1e", "1 ", " 1", "1\u{0}", "١", "0x1", "--1"] {
            #expect(message(Decimal.self, "\(text)") != nil, "\(text)")
        }
        for text in ["-.5", "5.", "+1.50E+02", String(repeating: "0", count: 100_000) + "1.0"] {
            #expect(message(Decimal.self, "\(text)") == nil, "\(text.prefix(20))")
        }
    }
}
