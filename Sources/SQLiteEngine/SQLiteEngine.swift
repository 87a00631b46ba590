// Chooses the engine. The rest of the package imports this module and is the same for both builds.

#if SQLCipher && PlainSQLite
    #error(
        """
        SealedDB: the traits SQLCipher and PlainSQLite exclude each other, because two engines in one process \
        export the same symbols and the wrong one would write plaintext. Enable one: for PlainSQLite pass \
        traits: ["PlainSQLite"] without .defaults, or --disable-default-traits --traits PlainSQLite.
        """
    )
#elseif SQLCipher
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
