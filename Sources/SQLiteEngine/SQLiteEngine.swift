// Chooses the engine. The rest of the package imports this module and is the same for both builds.
//
// Tools that read a package enable all of its traits, and a program gets every trait that one of its packages asks for.
// So both engine traits may be on; then SQLCipher is the engine, and libsqlite3 is not linked.

#if SQLCipher
    @_exported import COpenSSL
    @_exported import CSQLCipher
#elseif PlainSQLite
    @_exported import CSQLite
#else
    #error(
        """
        SealedDB: no engine is chosen. Enable the trait SQLCipher (the default) or PlainSQLite: \
        --disable-default-traits needs --traits PlainSQLite or --traits SQLCipher beside it.
        """
    )
#endif

/// The engine traits that this build was made with. With both, the engine is SQLCipher.
public var enabledEngineTraits: [String] {
    var traits: [String] = []
    #if SQLCipher
        traits.append("SQLCipher")
    #endif
    #if PlainSQLite
        traits.append("PlainSQLite")
    #endif
    return traits
}
