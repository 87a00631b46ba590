import Foundation

/// One book of the store; `id` is 0 until it is added.
struct Book: Equatable {
    var id: Int64 = 0
    var title: String
    var author: String
    var published: Date
    var summary = ""
}
