// Errors that a command can end with. main.ts maps each class to an exit code.

/** The command line is wrong. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** The command failed; the message says why and what to do. */
export class CommandError extends Error {
  override name = 'CommandError'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** The API key is missing, or the server rejects it. */
export class NotAuthenticated extends Error {
  override name = 'NotAuthenticated'
}
