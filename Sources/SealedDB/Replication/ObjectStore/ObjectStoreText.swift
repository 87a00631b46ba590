#if ObjectStores
    import Foundation
    import FoundationXML

    /// A part of the list of a bucket.
    struct ObjectStoreList {
        var objects: [StoredObject] = []
        /// Where the next part begins; `nil` if this is the last one.
        private(set) var next: String?

        /// - Returns: `nil` for what is no such list, or is not whole.
        init?(_ bytes: [UInt8]) {
            let reader = XMLElements(bytes)
            var (key, size, token): (String?, Int64?, String?)
            var isTruncated: Bool?
            var isSound = true
            var objects: [StoredObject] = []
            let isWhole = reader.read { path, text in
                switch path {
                case ["ListBucketResult", "IsTruncated"]:
                    isTruncated = text == "true" ? true : text == "false" ? false : nil
                case ["ListBucketResult", "NextContinuationToken"]: token = text
                case ["ListBucketResult", "Contents", "Key"]: key = text.removingPercentEncoding ?? text
                case ["ListBucketResult", "Contents", "Size"]: size = Int64(text)
                case ["ListBucketResult", "Contents"]:
                    if let key, let size, size >= 0 {
                        objects.append(StoredObject(name: key, size: size))
                    } else {
                        isSound = false
                    }
                    (key, size) = (nil, nil)
                default: break
                }
            }
            // A list that goes on, and does not say where, would be taken for one without the rest.
            guard isWhole, isSound, reader.root == "ListBucketResult", let isTruncated, !isTruncated || token != nil
            else {
                return nil
            }
            self.objects = objects
            next = isTruncated ? token : nil
        }
    }

    enum ObjectStoreErrorText {
        /// The word for an error, such as NoSuchKey; `nil` for any other text.
        static func code(in bytes: [UInt8]) -> String? {
            guard !bytes.isEmpty else { return nil }
            let reader = XMLElements(bytes)
            var code: String?
            let isWhole = reader.read { path, text in
                if path == ["Error", "Code"] { code = text }
            }
            guard isWhole, let code, !code.isEmpty, code.utf8.count <= 64,
                code.unicodeScalars.allSatisfy({ $0.isASCII && ($0.properties.isAlphabetic || $0 == ".") })
            else { return nil }
            return code
        }
    }

    /// The elements of a text in XML, and what stands in them.
    private final class XMLElements: NSObject, XMLParserDelegate {
        private let parser: XMLParser
        private var path: [String] = []
        private var text = ""
        private(set) var root: String?
        /// The parser itself takes a text that ends too early, and names that do not match, for XML.
        private var isSound = true
        private var visit: ([String], String) -> Void = { _, _ in }

        private static let deepest = 16
        private static let longestText = 1 << 16

        init(_ bytes: [UInt8]) {
            parser = XMLParser(data: Data(bytes))
            super.init()
            // Nothing else is fetched, whatever the text refers to.
            parser.shouldResolveExternalEntities = false
        }

        /// - Parameter visit: called at the end of each element, with the names from the outermost to it.
        /// - Returns: whether all of it is XML.
        func read(_ visit: @escaping ([String], String) -> Void) -> Bool {
            self.visit = visit
            parser.delegate = self
            defer { parser.delegate = nil }
            return parser.parse() && isSound && root != nil && path.isEmpty
        }

        func parser(
            _ parser: XMLParser,
            didStartElement name: String,
            namespaceURI: String?,
            qualifiedName: String?,
            attributes: [String: String]
        ) {
            if root == nil { root = name } else if path.isEmpty { isSound = false }
            path.append(name)
            text = ""
            if path.count > XMLElements.deepest { parser.abortParsing() }
        }

        func parser(_ parser: XMLParser, foundCharacters part: String) {
            text += part
            if text.utf8.count > XMLElements.longestText { parser.abortParsing() }
        }

        func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
            guard path.last == name else {
                isSound = false
                return parser.abortParsing()
            }
            visit(path, text)
            path.removeLast()
            text = ""
        }
    }
#endif
