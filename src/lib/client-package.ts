// The npm package with the client alone, and executables of the whole program.

/** Its name, also that of its tarball. It is not on a registry: each server has the one of its version. */
export const CLIENT_PACKAGE = 'adit-cli'

/** The oldest major version of Node that it runs on. */
export const CLIENT_NODE_MAJOR = 20

/** Compressed executables, by the names of Node's packages for these platforms. */
export const EXECUTABLES = ['adit-linux-x64.gz', 'adit-linux-arm64.gz', 'adit-win-x64.exe.gz'] as const
