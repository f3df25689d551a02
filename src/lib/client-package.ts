// The npm package with only the client, and the executables of the whole program.

/**
 * The name of the package and of its tarball. It is not on a registry: each server serves its own version.
 */
export const CLIENT_PACKAGE = 'adit-cli'

/** The oldest major version of Node that the client runs on. */
export const CLIENT_NODE_MAJOR = 20

/** Compressed executables, by the names of Node's packages for these platforms. */
export const EXECUTABLES = ['adit-linux-x64.gz', 'adit-linux-arm64.gz', 'adit-win-x64.exe.gz'] as const
