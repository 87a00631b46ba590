import Testing

@testable import sealdb

@Suite(.hangLimit)
struct NumberFormTests {
    private func describe(_ text: String) -> String {
        switch NumberForm(text.utf8) {
        case .integer(let value): "integer \(value)"
        case .real(let value): "real \(value)"
        case .text: "text"
        }
    }

    @Test(arguments: ["0", "7", "-7", "1000", "9223372036854775807", "-9223372036854775808"])
    func integers(_ text: String) {
        #expect(describe(text) == "integer \(text)")
    }

    /// Their spelling survives, which is what makes them numbers.
    @Test(arguments: ["0.5", "-0.5", "1.0", "0.0", "3.14159", "0.0001", "12345678.1234567"])
    func reals(_ text: String) {
        #expect(describe(text) == "real \(text)")
    }

    @Test(arguments: [
        "", "-", "+", ".", "abc", "1x", "1 2", "1e", "1e+", "0x10", "--1", "1.2.3", "inf", "nan", "007", "-007", "1.10",
        " 5\t",
        "+5", ".5", "5.", "0", "-0.000", "0e999", "1e3", "1E+3", "123456789012345", "0.000123456789012345",
        "1234567890.12345000", "100000000000000000000", "9007199254740993000000e-24x", "1732278362.123456",
        "0.30000000000000004", "52.520006599999997", "1234567890123456e1", "+1234567890123456", "-9223372036854775808",
        "9223372036854775808", "0.1000000000000000055511151231257827",
        "0.12345678901234567891", "999999999999999.123456789",
    ])
    func kept(_ text: String) {
        #expect(NumberForm.isKept(Array(text.utf8)[...], asReal: false))
        #expect(NumberForm.isKept(Array(text.utf8)[...], asReal: true))
    }

    @Test(arguments: [
        "1e400", "-1e400", "1e-400", "9223372036854775809", " 9223372036854775809 ", "1234567890123456789.0",
        "12345678901234567.89", "-9223372036854775809", "12345678901234567891", "12345678901234567e2",
    ])
    func notKept(_ text: String) {
        #expect(!NumberForm.isKept(Array(text.utf8)[...], asReal: false))
        #expect(!NumberForm.isKept(Array(text.utf8)[...], asReal: true))
    }

    @Test(arguments: ["9007199254740993", "9223372036854775807", "-9223372036854775807"])
    func longIntegersAreKeptAsSuch(_ text: String) {
        #expect(NumberForm.isKept(Array(text.utf8)[...], asReal: false))
        #expect(!NumberForm.isKept(Array(text.utf8)[...], asReal: true))
    }

    @Test(arguments: [
        "", "-", "+5", "007", "-0", "1.", ".5", "1.10", "00.5", "-0.0", "0.00001", "1e3", "inf", "nan", "0x10", " 1",
        "1 ",
        "9223372036854775808", "1.2.3", "NULL", "0.1234567890123456", "--1", "1-", "١",
    ])
    func texts(_ text: String) {
        #expect(describe(text) == "text")
    }
}
