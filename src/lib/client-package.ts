// The npm package with the client alone.

/** Its name, also that of its tarball. It is not on a registry: each server has the one of its version. */
export const CLIENT_PACKAGE = 'adit-cli'

/** The oldest major version of Node that it runs on. */
export const CLIENT_NODE_MAJOR = 20
