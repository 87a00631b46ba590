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
        "", "-", "+5", "007", "-0", "1.", ".5", "1.10", "00.5", "-0.0", "0.00001", "1e3", "inf", "nan", "0x10", " 1",
        "1 ",
        "9223372036854775808", "1.2.3", "NULL", "0.1234567890123456", "--1", "1-", "١",
    ])
    func texts(_ text: String) {
        #expect(describe(text) == "text")
    }
}
